"""Formats of durations, names, commands and reasons."""

from datetime import timedelta

import pytest

from tests.cli import rows
from workron.cli import formatting
from workron.core.plan import Kind
from workron.core.states import Reason, State


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (0.04, "0.0 s"), (59.94, "59.9 s"), (60, "1:00 min"), (75.9, "1:15 min"),
     (3599, "59:59 min"), (3600, "1:00 h"), (90_000, "25:00 h")],
)  # fmt: skip
def test_duration_is_rounded(seconds: float, text: str) -> None:
    assert formatting.seconds(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-5, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")],
)
def test_age_has_one_unit(seconds: float, text: str) -> None:
    assert formatting.age(rows.NOON, rows.NOON + timedelta(seconds=seconds)) == text


def test_job_path_is_accepted_by_commands() -> None:
    flow, alone = rows.run(), rows.run("hello", Kind.JOB)
    assert formatting.job_path(flow, rows.row("load", State.QUEUED)) == "flow/load"
    assert formatting.job_path(flow, rows.row("many", State.QUEUED, index=0)) == "flow/many/0"
    assert formatting.job_path(alone, rows.row("hello", State.QUEUED, job=1)) == "hello"


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"command": "\n  echo a\nb\n"}, "echo a …"),
        ({"command": "echo a\n"}, "echo a"),
        ({"argv": ["echo", "a b"]}, "echo 'a b'"),
        ({"command": "\x1b[31mred"}, "red"),
        ({}, ""),
    ],
)
def test_command_is_formatted_as_one_line(spec: dict[str, object], text: str) -> None:
    assert formatting.command(spec) == text


def test_message_of_a_job_is_one_line() -> None:
    failed = rows.row("a", State.FAILED, reason=Reason.TIMEOUT, message="one\ntwo")
    assert formatting.reason(failed) == "one two (Timeout)"


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_text(reason: Reason) -> None:
    assert formatting.reason(rows.row("a", State.FAILED, reason=reason))

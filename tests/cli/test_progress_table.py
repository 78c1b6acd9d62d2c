"""The live display, drawn into a buffer."""

import dataclasses
import io
from datetime import datetime, timedelta

import pytest
from rich.console import Console

from tests.cli import rows
from workron.cli.progress import ProgressTable, RunSnapshot
from workron.core.ids import JobId
from workron.core.states import Reason, State

_HEIGHT = 24


class FakeClock:
    def now(self) -> datetime:
        return rows.NOON

    def monotonic(self) -> float:
        return 0.0


def _draw(snapshot: RunSnapshot | None, *notes: str, height: int = _HEIGHT) -> list[str]:
    console = Console(
        file=io.StringIO(), force_terminal=True, width=80, height=height, color_system=None
    )
    specs = {JobId(2): {"command": "first line\nsecond line " + "x" * 200}}
    table = ProgressTable(console, FakeClock(), specs)
    if snapshot is not None:
        table.show(snapshot)
    for note in notes:
        table.say(note)
    with console.capture() as drawn:
        console.print(table._render())
    return [line.rstrip() for line in drawn.get().splitlines()]


def test_table_counts_tasks_and_lists_running_jobs() -> None:
    many = [rows.row("many", state, job=10 + at, index=at)
            for at, state in enumerate([State.SUCCEEDED, State.QUEUED, State.WAITING])]  # fmt: skip
    lines = _draw(rows.snapshot(rows.row("one", State.RUNNING, seconds=75), *many))
    assert lines[0].endswith("  1 of 4 jobs  0.0 s")
    assert lines[2].split() == ["succeeded", "running", "waiting"]
    assert lines[3].split() == ["one", "·", "1", "·"]
    assert lines[4].split() == ["many", "1", "·", "2"]
    assert lines[6] == "▸ flow/one  1:15 min  first line …"


def test_columns_of_failures_are_shown_when_there_are_any() -> None:
    lines = _draw(rows.snapshot(rows.row("a", State.FAILED), rows.row("b", State.SKIPPED, job=3)))
    assert lines[2].split() == ["succeeded", "running", "waiting", "failed", "skipped"]


def test_column_headings_are_not_cut_when_names_are_long() -> None:
    states = [State.SUCCEEDED, State.RUNNING, State.WAITING, State.FAILED, State.SKIPPED]
    jobs = [rows.row("x" * 60, state, job=10 + at) for at, state in enumerate(states)]
    lines = _draw(rows.snapshot(*jobs, rows.row("y", State.CANCELLED, job=99)))
    titles = ["succeeded", "running", "waiting", "failed", "skipped", "cancelled"]
    assert lines[2].split() == titles
    assert "…" in lines[3]
    assert max(map(len, lines)) <= 80


def test_time_is_that_of_the_current_attempt_when_a_job_was_retried() -> None:
    again = rows.row("a", State.RUNNING, attempts=2, seconds=3600)
    unseen = rows.row("b", State.RUNNING, attempts=3, seconds=3600, job=3)
    begins = {(again.job, 2): rows.NOON - timedelta(seconds=5)}
    lines = _draw(dataclasses.replace(rows.snapshot(again, unseen), begins=begins))
    assert [line.split("  ")[1] for line in lines if line.startswith("▸")] == ["5.0 s", "0.0 s"]


def test_retries_are_listed_after_running_jobs() -> None:
    due = rows.NOON + timedelta(seconds=3)
    flaky = rows.row("flaky", State.WAITING, job=3, failures=2, reason=Reason.BACKOFF, due=due)
    lines = _draw(rows.snapshot(flaky, rows.row("one", State.RUNNING, seconds=1)))
    assert lines[-2:] == [
        "▸ flow/one  1.0 s  first line …",
        "↻ flow/flaky  failed 2 times, retry in 3.0 s",
    ]


@pytest.mark.parametrize("height", [10, 24, 60])
@pytest.mark.parametrize("running", [0, 3, 500])
def test_table_fits_the_terminal_when_there_are_many_tasks(height: int, running: int) -> None:
    names = [f"t{number}" for number in range(1000)]
    jobs = rows.numbered(names[:running], State.RUNNING)
    jobs += rows.numbered(names[running:], State.WAITING)
    assert (
        len(_draw(rows.snapshot(*jobs), "one note", "two notes", "three", height=height)) <= height
    )


def test_other_tasks_are_summed_up_when_not_all_fit() -> None:
    names = [f"t{number}" for number in range(100)]
    jobs = [*rows.numbered(names, State.WAITING), rows.row("late", State.RUNNING, job=500)]
    lines = _draw(rows.snapshot(*jobs))
    assert any(line.split() == ["late", "·", "1", "·"] for line in lines)
    [rest] = [line.split() for line in lines if " more " in f"{line} "]
    assert int(rest[0]) + sum(line.startswith("t") for line in lines) == 100


def test_last_notes_are_shown_when_there_are_many() -> None:
    lines = _draw(rows.snapshot(rows.row("a", State.RUNNING)), "first", "second", "third")
    assert lines[-2:] == ["second", "third"]


def test_table_shows_starting_before_the_first_snapshot() -> None:
    assert _draw(None) == ["starting"]

"""The live display, drawn into a buffer."""

import dataclasses
import io
from datetime import datetime, timedelta

import pytest
from rich import cells
from rich.console import Console

from tests.cli import rows
from workron.cli.progress import FailureDetail, RunSnapshot
from workron.cli.progress_table import ProgressTable, progress_bar
from workron.core.ids import JobId
from workron.core.states import Reason, State
from workron.store.types import AttemptRow

_HEIGHT = 24


class FakeClock:
    def now(self) -> datetime:
        return rows.NOON

    def monotonic(self) -> float:
        return 0.0


def _draw(
    snapshot: RunSnapshot | None, *notes: str, height: int = _HEIGHT, width: int = 80
) -> list[str]:
    console = Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None
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
    assert [line.split("  ")[1] for line in lines if line.startswith("▸ ")] == ["5.0 s", "0.0 s"]


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


def _failed(count: int) -> RunSnapshot:
    failed = [rows.row(f"t{at}", State.FAILED, job=at, attempts=1) for at in range(2, count + 2)]
    attempt = AttemptRow(JobId(2), 1, "Failed", None, 7, "w", rows.NOON, rows.NOON)
    details = {JobId(2): FailureDetail(attempt, b"the reason\n", {})}
    ended = [(rows.run(), row) for row in failed]
    return dataclasses.replace(rows.snapshot(*failed), ended=ended, details=details)


def _printed(*snapshots: RunSnapshot) -> list[str]:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    table = ProgressTable(console, FakeClock(), {})
    with console.capture() as drawn:
        for snapshot in snapshots:
            table.show(snapshot)
    return drawn.get().splitlines()


def test_failure_is_printed_once_when_it_happens() -> None:
    failed = _failed(1)
    later = dataclasses.replace(failed, ended=[])
    assert _printed(failed, later) == ["Failed     flow/t2", "  | the reason"]


def test_success_is_not_printed() -> None:
    good = rows.row("good", State.SUCCEEDED)
    assert _printed(dataclasses.replace(rows.snapshot(good), ended=[(rows.run(), good)])) == []


def test_failures_are_only_counted_when_too_many_were_printed() -> None:
    lines = _printed(_failed(500), _failed(500))
    assert len(lines) == 201
    assert lines[-1] == "More failures are counted in the table."


@pytest.mark.parametrize("width", [20, 40, 59, 60, 100, 200])
def test_lines_fit_when_the_terminal_is(width: int) -> None:
    states = list(State)
    jobs = [
        rows.row(f"task-{at}", states[at % len(states)], job=at, seconds=1)
        for at in range(2, 10_000)
    ]
    lines = _draw(rows.snapshot(*jobs), "a note", width=width)
    assert max(map(cells.cell_len, lines)) <= width
    assert len(lines) <= _HEIGHT


def test_short_headings_are_complete_when_the_terminal_has_40_columns() -> None:
    jobs = [rows.row("some-long-task", state, job=at) for at, state in enumerate(State, 2)]
    lines = _draw(rows.snapshot(*jobs), width=40)
    assert lines[2].split() == ["ok", "run", "wait", "fail", "skip", "canc"]
    assert lines[3].split()[0] == "some-long-t…"


@pytest.mark.parametrize(
    ("counts", "bar"),
    [
        ({State.SUCCEEDED: 10}, "━━━━━━━━━━"),
        ({State.SUCCEEDED: 5, State.WAITING: 5}, "━━━━━·····"),
        ({State.SUCCEEDED: 9_999, State.FAILED: 1}, "━━━━━━━━━✗"),
        ({State.FAILED: 3, State.SKIPPED: 3, State.RUNNING: 4}, "✗✗✗╌╌╌▸▸▸▸"),
        ({State.SUCCEEDED: 1, State.RUNNING: 1, State.WAITING: 1}, "━━━━▸▸▸···"),
        ({}, ""),
    ],
)
def test_states_differ_by_glyph_in_the_bar(counts: dict[State, int], bar: str) -> None:
    assert progress_bar(counts, 10).plain == bar


def test_bar_is_empty_when_it_has_no_room() -> None:
    assert progress_bar(dict.fromkeys(State, 1), 0).plain == ""

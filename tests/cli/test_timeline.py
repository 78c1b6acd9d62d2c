"""The table of tasks with their time lines, in any width."""

from datetime import timedelta

import pytest

from tests.cli import rows
from workron.cli import timeline
from workron.cli.progress import ObservedRun
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.store.types import JobRow


def _row(name: str, state: State, begin: float, end: float, **fields: int) -> JobRow:
    began, ended = (rows.NOON + timedelta(seconds=seconds) for seconds in (begin, end))
    return rows.row(name, state, started_at=began, finished_at=ended, **fields)


def _lines(*jobs: JobRow, width: int = 80) -> list[str]:
    own = rows.row("flow", State.FAILED, job=1, kind=Kind.WORKFLOW)
    return [line.plain for line in timeline.lines([ObservedRun(rows.run(), [own, *jobs])], width)]


_SKIPPED = rows.row("load", State.SKIPPED, job=9, reason=Reason.UPSTREAM_FAILED)
_JOBS = (
    _row("extract", State.SUCCEEDED, 0, 5, job=2),
    _row("convert", State.SUCCEEDED, 5, 10, job=3, index=0),
    _row("convert", State.FAILED, 10, 15, job=4, index=1),
    _row("convert", State.SUCCEEDED, 5, 12, job=5, index=2),
    _SKIPPED,
    _row("cleanup", State.SUCCEEDED, 18, 20, job=10),
)


def test_lines_show_when_the_jobs_of_each_task_ran_and_failed() -> None:
    assert _lines(*_JOBS, width=54) == [
        "task     jobs  state        took  0             20.0 s",
        "extract     1  Succeeded   5.0 s  ━━━━━━",
        "convert     3  1 Failed   10.0 s       ━━━━━━━━━━✗",
        "load        1  Skipped            an upstream job fai…",
        "cleanup     1  Succeeded   2.0 s                    ━━",
    ]


def test_pause_is_drawn_when_no_job_of_a_task_ran_for_a_while() -> None:
    jobs = [
        _row("a", State.SUCCEEDED, begin, begin + 1, job=at)
        for at, begin in ((2, 0), (3, 50), (4, 99))
    ]
    assert _lines(*jobs)[1].count("━ ") == 2


@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_table_fits_the_width(width: int) -> None:
    long = _row("x" * 60, State.FAILED, 0, 1, job=20)
    lines = _lines(*_JOBS, long, width=width)
    assert max(map(len, lines)) <= width
    assert ("✗" in "".join(lines)) == (width > 40)


def test_other_tasks_are_counted_when_they_are_too_many() -> None:
    jobs = [_row(f"t{at}", State.SUCCEEDED, 0, at, job=at) for at in range(2, 1002)]
    lines = _lines(*jobs, rows.row("bad", State.FAILED, job=5000))
    assert len(lines) == 32
    assert lines[-1] == "971 more tasks"
    assert lines[-2].startswith("bad ")


def test_no_time_line_is_drawn_when_no_job_has_started() -> None:
    assert _lines(rows.row("a", State.WAITING), rows.row("b", State.CANCELLED, job=3)) == [
        "task  jobs  state      took",
        "a        1  Waiting",
        "b        1  Cancelled",
    ]


def test_task_is_named_with_its_run_when_there_are_several() -> None:
    own = rows.row("flow", State.SUCCEEDED, job=1, kind=Kind.WORKFLOW)
    single = rows.row("hello", State.SUCCEEDED, job=7)
    observed = [ObservedRun(rows.run(), [own, *_JOBS]),
                ObservedRun(rows.run("hello", Kind.JOB, 7), [single])]  # fmt: skip
    names = [line.plain.split()[0] for line in timeline.lines(observed, 80)]
    assert names == ["task", "flow/extract", "flow/convert", "flow/load", "flow/cleanup", "hello"]

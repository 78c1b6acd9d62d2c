"""Changes since the last read of a run."""

from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from tests.cli import rows
from workron.cli.progress import RunFeed
from workron.core import errors
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import State
from workron.store.api import ReadStore
from workron.store.types import AttemptRow, JobRow


class FakeClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return rows.NOON

    def monotonic(self) -> float:
        return self.seconds


class FakeReader:
    """Returns the rows that the test has set; each read takes `cost` seconds."""

    def __init__(self, clock: FakeClock, cost: float = 0.0) -> None:
        self._clock = clock
        self._cost = cost
        self.rows: list[JobRow] = []
        self.reads = 0
        self.fails_at = 0

    async def list_jobs(self, _: JobId) -> list[JobRow]:
        self.reads += 1
        if self.reads == self.fails_at:
            raise errors.StoreUnreachableError("db does not answer")
        self._clock.seconds += self._cost
        return self.rows

    async def list_attempts(self, job: JobId) -> list[AttemptRow]:
        return [AttemptRow(job, 1, "Failed", None, 7, "w", rows.NOON, rows.NOON)]

    async def read_output(self, job: JobId, *, last: int) -> bytes:
        assert last > 0
        return b"output of %d" % job

    async def get_spec(self, _: JobId) -> dict[str, str]:
        return {"command": "false"}


def _feed(cost: float = 0.0) -> tuple[RunFeed, FakeReader]:
    clock = FakeClock()
    reader = FakeReader(clock, cost)
    return RunFeed(cast("ReadStore", reader), clock, [rows.run()]), reader


def _with_workflow(state: State, *jobs: JobRow) -> list[JobRow]:
    return [rows.row("flow", state, job=1, kind=Kind.WORKFLOW), *jobs]


def _ended(name: str, job: int, second: int, **fields: Any) -> JobRow:
    at = rows.NOON + timedelta(seconds=second)
    return rows.row(name, State.SUCCEEDED, job=job, finished_at=at, **fields)


async def test_ends_are_reported_once_and_in_their_order() -> None:
    feed, reader = _feed()
    reader.rows = _with_workflow(State.RUNNING, _ended("late", 2, 9), _ended("early", 3, 1))
    assert [row.name for _, row in (await feed.read()).ended] == ["early", "late"]
    assert list((await feed.read()).ended) == []


async def test_end_is_not_reported_when_it_is_that_of_a_group() -> None:
    feed, reader = _feed()
    reader.rows = _with_workflow(State.SUCCEEDED, _ended("many", 2, 1, kind=Kind.ARRAY))
    assert list((await feed.read()).ended) == []


async def test_failure_is_reported_once_when_the_job_is_retried() -> None:
    feed, reader = _feed()
    reader.rows = _with_workflow(State.RUNNING, rows.row("a", State.WAITING, failures=1))
    assert [row.name for _, row in (await feed.read()).failing] == ["a"]
    assert list((await feed.read()).failing) == []
    reader.rows = _with_workflow(State.RUNNING, rows.row("a", State.WAITING, failures=2))
    assert len((await feed.read()).failing) == 1


async def test_last_failure_is_reported_as_an_end_only() -> None:
    feed, reader = _feed()
    reader.rows = _with_workflow(State.RUNNING, rows.row("a", State.FAILED, failures=3))
    snapshot = await feed.read()
    assert (len(snapshot.ended), len(snapshot.failing)) == (1, 0)


async def test_earlier_ends_are_not_reported_when_a_run_is_resumed() -> None:
    feed, reader = _feed()
    reader.rows = _with_workflow(
        State.RUNNING, _ended("a", 2, 1), rows.row("b", State.QUEUED, job=3)
    )
    await feed.start_from(feed.runs[0])
    assert feed.ended == 1
    reader.rows = _with_workflow(State.RUNNING, _ended("a", 2, 1), _ended("b", 3, 2))
    assert [row.name for _, row in (await feed.read()).ended] == ["b"]


async def test_changes_are_reported_later_when_a_read_fails() -> None:
    feed, reader = _feed()
    feed.runs = [rows.run(), rows.run("other", job=2)]
    reader.rows = _with_workflow(State.RUNNING, _ended("a", 2, 1))
    reader.fails_at = 2
    with pytest.raises(errors.StoreUnreachableError):
        await feed.read()
    assert len((await feed.read()).ended) == 2


async def test_time_counts_from_the_first_snapshot_when_a_job_is_retried() -> None:
    feed, reader = _feed()
    first = rows.row("a", State.RUNNING, attempts=1, seconds=9)
    second = rows.row("a", State.RUNNING, attempts=2, seconds=9)
    reader.rows = _with_workflow(State.RUNNING, first)
    assert (await feed.read()).began(first) == first.started_at
    reader.rows = _with_workflow(State.RUNNING, second)
    assert (await feed.read()).began(second) == rows.NOON


async def test_ended_run_is_not_read_again() -> None:
    feed, reader = _feed()
    reader.rows = _with_workflow(State.SUCCEEDED)
    await feed.read()
    assert (await feed.read()).runs[0].row.state is State.SUCCEEDED
    assert reader.reads == 1


async def test_pause_is_longer_when_reads_are_slow() -> None:
    feed, reader = _feed(cost=2.0)
    reader.rows = _with_workflow(State.RUNNING)
    await feed.read()
    assert feed.pause_seconds == 20.0


async def test_details_are_read_for_the_first_failures_only() -> None:
    feed, reader = _feed()
    feed.max_details = 3
    failing = [
        rows.row(name, State.WAITING, job=job, failures=1) for job, name in ((2, "a"), (3, "b"))
    ]
    reader.rows = _with_workflow(State.RUNNING, *failing)
    details = (await feed.read()).details
    assert [(job, one.output) for job, one in details.items()] == [
        (2, b"output of 2"), (3, b"output of 3"),
    ]  # fmt: skip
    assert [one.attempt and one.attempt.exit_code for one in details.values()] == [7, 7]
    failed = [rows.row(str(job), State.FAILED, job=job, failures=1) for job in (4, 5)]
    reader.rows = _with_workflow(State.RUNNING, *failing, *failed)
    assert list((await feed.read()).details) == [4]

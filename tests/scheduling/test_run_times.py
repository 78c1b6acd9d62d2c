"""The time of a job is that of its last attempt."""

from datetime import timedelta
from typing import Any, cast

from tests.cli import rows
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import State
from workron.scheduling import job_view
from workron.store.api import ReadStore
from workron.store.types import AttemptRow, JobRow


def _at(seconds: float) -> Any:
    return rows.NOON + timedelta(seconds=seconds)


class FakeReader:
    """A store in which each job failed after 2 s, waited for an hour, and succeeded in 3 s."""

    def __init__(self) -> None:
        self.read: list[JobId] = []

    async def list_attempts(self, job: JobId) -> list[AttemptRow]:
        self.read.append(job)
        return [
            AttemptRow(job, 1, "Retry", None, 1, "w", _at(0), _at(2)),
            AttemptRow(job, 2, "Succeeded", None, 0, "w", _at(3600), _at(3603)),
        ]


def _row(**fields: Any) -> JobRow:
    return rows.row("a", State.SUCCEEDED, started_at=_at(0), finished_at=_at(3603), **fields)


async def test_time_is_that_of_the_last_attempt_when_a_job_was_retried() -> None:
    found = await job_view.last_run_time(cast("ReadStore", FakeReader()), _row(attempts=2))
    assert found == (_at(3600), 3.0)


async def test_no_attempts_are_read_when_the_row_has_the_time() -> None:
    reader = FakeReader()
    for fields in ({"attempts": 1}, {"attempts": 2, "kind": Kind.WORKFLOW}):
        assert await job_view.last_run_time(cast("ReadStore", reader), _row(**fields)) == (
            _at(0),
            3603.0,
        )
    assert reader.read == []


async def test_times_of_many_jobs_are_returned_by_job() -> None:
    many = [_row(job=number, attempts=1 + number % 2) for number in range(250)]
    spans = await job_view.run_times(cast("ReadStore", FakeReader()), many)
    assert [spans[row.job].seconds for row in many] == [3603.0, 3.0] * 125

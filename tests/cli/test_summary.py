"""The summary lists the slowest jobs by their last attempts, of which it reads few."""

import io
from datetime import timedelta
from typing import cast
from unittest.mock import AsyncMock

import pytest
from rich.console import Console

from tests.cli import rows
from workron.cli import summary
from workron.cli.progress import ObservedRun
from workron.core import errors
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import State
from workron.store.api import ReadStore
from workron.store.types import AttemptRow, JobRow


class FakeReader:
    """A store in which every job was retried and its last attempt took a second."""

    def __init__(self) -> None:
        self.read: list[JobId] = []

    async def list_attempts(self, job: JobId) -> list[AttemptRow]:
        self.read.append(job)
        end = rows.NOON + timedelta(seconds=1)
        return [AttemptRow(job, 2, "Succeeded", None, 0, "w", rows.NOON, end)]


def _row(name: str, job: int, seconds: float, attempts: int) -> JobRow:
    return rows.row(
        name,
        State.SUCCEEDED,
        job=job,
        attempts=attempts,
        started_at=rows.NOON,
        finished_at=rows.NOON + timedelta(seconds=seconds),
    )


async def test_slowest_jobs_are_those_with_the_slowest_last_attempts() -> None:
    jobs = [_row("lay-for-an-hour", 2, 3600.0, attempts=2)]
    jobs += [_row(f"n{seconds}", 10 + seconds, seconds, attempts=1) for seconds in range(2, 6)]
    jobs += [_row(f"quick{at}", 100 + at, 0.5, attempts=2) for at in range(50)]
    own = rows.row("flow", State.SUCCEEDED, job=1, kind=Kind.WORKFLOW)
    console, reader = Console(file=io.StringIO(), width=200), FakeReader()
    runs = [ObservedRun(rows.run(), [own, *jobs])]
    await summary.print_summary(console, cast("ReadStore", reader), runs, 9.0, before=1)
    printed = cast("io.StringIO", console.file).getvalue().splitlines()
    assert printed[1:] == [
        "55 jobs in 9.0 s: 55 succeeded; 1 of them ended before this start",
        "slowest: flow/n5 5.0 s, flow/n4 4.0 s, flow/n3 3.0 s",
    ]
    assert reader.read == [JobId(2)]


async def test_state_and_counts_are_printed_when_the_store_fails() -> None:
    reader = AsyncMock()
    reader.read_output.side_effect = errors.StoreUnreachableError("no answer")
    console = Console(file=io.StringIO(), width=200)
    job = rows.row("job", State.FAILED, job=1, attempts=1)
    with pytest.raises(errors.StoreUnreachableError):
        await summary.print_summary(
            console, reader, [ObservedRun(rows.run(), [job])], 9.0, before=0
        )
    printed = cast("io.StringIO", console.file).getvalue()
    assert "Failed" in printed
    assert "1 job in 9.0 s: 1 failed" in printed

"""The summary lists the slowest jobs by their last attempts, of which it reads few."""

import dataclasses
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
from workron.core.states import Reason, State
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
    assert printed[-2:] == [
        "55 jobs in 9.0 s: 55 succeeded; 1 of them ended before this start",
        "slowest: flow/n5 5.0 s, flow/n4 4.0 s, flow/n3 3.0 s",
    ]
    assert reader.read == [JobId(2)]


async def test_counts_are_printed_when_the_store_fails() -> None:
    reader = AsyncMock()
    reader.list_attempts.side_effect = errors.StoreUnreachableError("no answer")
    jobs = [_row("a", 2, 1.0, attempts=2), _row("b", 3, 1.0, attempts=2)]
    own = rows.row("flow", State.SUCCEEDED, job=1, kind=Kind.WORKFLOW)
    console = Console(file=io.StringIO(), width=200)
    with pytest.raises(errors.StoreUnreachableError):
        await summary.print_summary(
            console, reader, [ObservedRun(rows.run(), [own, *jobs])], 9.0, before=0
        )
    printed = cast("io.StringIO", console.file).getvalue()
    assert "flow  Succeeded" in printed
    assert "2 jobs in 9.0 s: 2 succeeded" in printed


def _failed(name: str, job: int, seconds: float) -> JobRow:
    end = rows.NOON + timedelta(seconds=seconds)
    return rows.row(name, State.FAILED, job=job, attempts=1, started_at=rows.NOON, finished_at=end,
                    message="exit code 3", reason=Reason.EXIT_CODE)  # fmt: skip


def _run_with(*jobs: JobRow, namespace: str = "default") -> ObservedRun:
    run = dataclasses.replace(rows.run(), namespace=namespace)
    return ObservedRun(run, [rows.row("flow", State.FAILED, job=1, kind=Kind.WORKFLOW), *jobs])


async def test_first_failure_is_named_when_several_jobs_failed() -> None:
    console = Console(file=io.StringIO(), width=200)
    run = _run_with(_failed("late", 2, 9.0), _failed("early", 3, 1.0))
    await summary.print_summary(console, AsyncMock(), [run], 9.0, before=0)
    printed = cast("io.StringIO", console.file).getvalue().splitlines()
    assert printed[-1] == "failed first: flow/early  exit code 3 (ExitCode)"


@pytest.mark.parametrize(
    ("store", "variable", "namespace", "lines"),
    [
        ("sqlite:///a b.db", "", "default", [
            "to see more:",
            "  workron output flow/bad --store 'sqlite:///a b.db'",
            "  workron describe flow --store 'sqlite:///a b.db'",
        ]),
        ("sqlite:///jobs.db", "sqlite:///jobs.db", "team", [
            "to see more:",
            "  workron output flow/bad -n team",
            "  workron describe flow -n team",
        ]),
        ("postgresql://me:secret@db/jobs", "", "default", [
            "to see more, with WORKRON_STORE set to this store:",
            "  workron output flow/bad",
            "  workron describe flow",
        ]),
        ("memory:", "", "default", [
            "to keep the output of all jobs, use --store sqlite:///path or --output-dir",
        ]),
    ],
)  # fmt: skip
def test_next_steps_reach_the_run(
    monkeypatch: pytest.MonkeyPatch, store: str, variable: str, namespace: str, lines: list[str]
) -> None:
    monkeypatch.setenv("WORKRON_STORE", variable)
    good = rows.row("good", State.SUCCEEDED, job=3)
    run = _run_with(_failed("bad", 2, 1.0), good, namespace=namespace)
    assert summary.next_steps([run], store) == lines


def test_next_steps_are_empty_when_nothing_failed() -> None:
    assert summary.next_steps([_run_with(rows.row("a", State.SUCCEEDED))], "sqlite:///x") == []

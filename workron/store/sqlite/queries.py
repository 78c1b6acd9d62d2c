"""The read interface; a file is read concurrently with its writer, without locks."""

from __future__ import annotations

import json
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from workron.core import payloads
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.store.sqlite import engine
from workron.store.sqlite.engine import SqliteDatabase, json_list
from workron.store.types import (
    AttemptRow,
    Blocker,
    JobFailure,
    JobRow,
    OutputChunk,
    RunRow,
    RunSummary,
    Signal,
    StateCounts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from workron.store.sqlite.engine import Transaction


_T = TypeVar("_T")


class SqliteReadStore(SqliteDatabase):
    """`api.ReadStore`."""

    async def find_run(self, namespace: str, kind: Kind, name: str) -> RunRow | None:
        """Find the newest run of a name."""
        return await self._first(
            "find_run.find_run", _run, namespace=namespace, kind=kind, name=name
        )

    async def list_runs(self, namespace: str | None = None) -> Sequence[RunRow]:
        """List runs, newest first."""
        return await self._list("list_runs.list_runs", _run, namespace=namespace)

    async def list_run_summaries(self, namespace: str | None = None) -> Sequence[RunSummary]:
        """List runs with their own state and progress, newest first."""
        return await self._list(
            "list_run_summaries.list_run_summaries", _summary, namespace=namespace
        )

    async def list_jobs(self, run: JobId) -> Sequence[JobRow]:
        """List all jobs of a run in order of id."""
        return await self._list("list_jobs.list_jobs", _job, run=run)

    async def find_job(self, run: JobId, name: str, index: int | None = None) -> JobId | None:
        """Find a job of a run by name, and an element of an array also by index."""
        return await self._first("find_job.find_job", _id, run=run, name=name, index=index)

    async def get_jobs(self, jobs: Sequence[JobId]) -> Sequence[JobRow]:
        """Get these jobs in this order."""
        return await self._list("get_jobs.get_jobs", _job, jobs=json_list(jobs))

    async def filter_ended(self, jobs: Sequence[JobId]) -> AbstractSet[JobId]:
        """Return those of these jobs that have ended."""
        return set(await self._list("filter_ended.filter_ended", _id, jobs=json_list(jobs)))

    async def get_spec(self, job: JobId) -> Mapping[str, Any] | None:
        """Get a job's spec."""
        body: Mapping[str, Any] | None = await self._first("get_spec.get_spec", _body, job=job)
        return body

    async def list_specs(self, run: JobId) -> Mapping[JobId, Mapping[str, Any]]:
        """Get the specs of a run's jobs; each text is parsed once."""
        return await self._read(partial(_specs, run=run))

    async def list_blockers(self, job: JobId) -> Sequence[Blocker]:
        """List what a job waits for, unfinished upstreams first."""
        return await self._list("list_blockers.list_blockers", _blocker, job=job)

    async def list_attempts(self, job: JobId) -> Sequence[AttemptRow]:
        """List the ended attempts of a job, oldest first."""
        return await self._list("list_attempts.list_attempts", _attempt, job=job)

    async def read_output(self, job: JobId, *, last: int | None = None) -> bytes:
        """Read the output of the newest attempt that has any, or its last bytes."""
        parts = await self._list("read_output.read_output", itemgetter("data"), job=job, last=last)
        return payloads.join_output(parts, last)

    async def read_output_chunks(
        self, job: JobId, attempt: int, chunk: int = 0
    ) -> Sequence[OutputChunk]:
        """Read some chunks of an attempt's output."""
        about = {"job": job, "attempt": attempt, "chunk": chunk, "most": payloads.CHUNKS_PER_READ}
        return await self._list("read_output_chunks.read_output_chunks", OutputChunk._make, **about)

    async def read_result(self, job: JobId) -> Any:
        """Read a job's result, or None."""
        return await self._first("read_result.read_result", _body, job=job)

    async def count_states(self, run: JobId) -> StateCounts:
        """Count a run's jobs by state, without groups."""
        rows = await self._list("count_states.count_states", tuple, run=run)
        return StateCounts({State(state): count for state, count in rows})

    async def count_workers(self) -> Mapping[tuple[str, str], int]:
        """Count workers by namespace and pool."""
        rows = await self._list("count_workers.count_workers", tuple)
        return {(namespace, name): count for namespace, name, count in rows}

    async def has_maintainer(self) -> bool:
        """Return whether a maintainer is elected and its lease is valid."""
        return bool(await self._list("has_maintainer.has_maintainer", tuple))

    async def list_failures(self, run: JobId, limit: int) -> Sequence[JobFailure]:
        """List the jobs of a run that failed first."""
        return await self._list("list_failures.list_failures", _failure, run=run, limit=limit)

    async def list_signals(self, run: JobId) -> Mapping[JobId, Signal]:
        """List signals to running jobs that have not taken effect yet."""
        rows = await self._list("list_signals.list_signals", tuple, run=run)
        return {JobId(job): Signal(signal) for job, signal in rows}

    async def _list(
        self, statement: str, convert: Callable[[Any], _T], /, **values: Any
    ) -> list[_T]:
        # Converted on the thread: 100,000 rows must not block the event loop.
        return await self._read(lambda tx: [convert(row) for row in tx.rows(statement, **values)])

    async def _first(
        self, statement: str, convert: Callable[[Any], _T], /, **values: Any
    ) -> _T | None:
        found = await self._list(statement, convert, **values)
        return found[0] if found else None


def _specs(tx: Transaction, run: JobId) -> dict[JobId, Mapping[str, Any]]:
    bodies = {row["id"]: json.loads(row["body"]) for row in tx.rows("list_specs.bodies", run=run)}
    return {JobId(row["job"]): bodies[row["spec"]] for row in tx.rows("list_specs.jobs", run=run)}


def _id(row: Any) -> JobId:
    return JobId(row["job"])


def _body(row: Any) -> Any:
    return json.loads(row["body"])


def _summary(row: Any) -> RunSummary:
    return RunSummary(_run(row), _job(row), row["commands"], row["ended"])


def _run(row: Any) -> RunRow:
    return RunRow(
        run=JobId(row["id"]),
        last_job=JobId(row["last"]),
        namespace=row["namespace"],
        kind=Kind(row["kind"]),
        name=row["name"],
        uid=UUID(row["uid"]),
        digest=row["digest"],
        submitted_at=engine.from_micros(row["submitted_at"]),
        metadata=json.loads(row["metadata"]),
    )


def _job(row: Any) -> JobRow:
    return JobRow(
        job=JobId(row["job"]),
        run=JobId(row["run"]),
        kind=Kind(row["kind"]),
        name=row["name"],
        index=row["index"],
        group_id=row["group_id"],
        state=State(row["state"]),
        reason=_reason(row),
        message=row["message"],
        priority=row["priority"],
        pool=row["pool"],
        attempts=row["attempts"],
        failures=row["failures"],
        losses=row["losses"],
        exit_code=row["exit_code"],
        worker=row["worker"],
        due=engine.from_micros(row["due"]),
        started_at=engine.from_micros(row["started_at"]),
        finished_at=engine.from_micros(row["finished_at"]),
    )


def _blocker(row: Any) -> Blocker:
    return Blocker(
        job=row["job"],
        kind=Kind(row["kind"]),
        name=row["name"],
        index=row["index"],
        condition=row["condition"],
        state=None if row["state"] is None else State(row["state"]),
    )


def _failure(row: Any) -> JobFailure:
    return JobFailure(
        job=JobId(row["job"]),
        name=row["name"],
        index=row["index"],
        reason=Reason(row["reason"]),
        message=row["message"],
        exit_code=row["exit_code"],
    )


def _attempt(row: Any) -> AttemptRow:
    return AttemptRow(
        job=JobId(row["job"]),
        attempt=row["attempt"],
        outcome=row["outcome"],
        reason=_reason(row),
        exit_code=row["exit_code"],
        worker=row["worker"],
        started_at=engine.from_micros(row["started_at"]),
        finished_at=engine.from_micros(row["finished_at"]),
    )


def _reason(row: Any) -> Reason | None:
    return None if row["reason"] is None else Reason(row["reason"])

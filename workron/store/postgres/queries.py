"""The read interface: queries that change nothing and wait for no lock."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from workron.core import payloads
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.store import types
from workron.store.postgres.database import PostgresDatabase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from asyncpg import Record


_RUN_FIELDS: Final = [field.name for field in fields(types.RunRow)]
_JOB_FIELDS: Final = [field.name for field in fields(types.JobRow)]


class PostgresReadStore(PostgresDatabase):
    """`api.ReadStore`."""

    async def find_run(self, namespace: str, kind: Kind, name: str) -> types.RunRow | None:
        """Find the newest run of a name."""
        rows = await self._query("find_run", namespace, kind, name)
        return _run(rows[0]) if rows else None

    async def list_runs(self, namespace: str | None = None) -> Sequence[types.RunRow]:
        """List runs, newest first."""
        return [_run(row) for row in await self._query("list_runs", namespace)]

    async def list_run_summaries(self, namespace: str | None = None) -> Sequence[types.RunSummary]:
        """List runs with their own state and progress, newest first."""
        return [_summary(row) for row in await self._call("list_run_summaries", namespace)]

    async def list_jobs(self, run: JobId) -> Sequence[types.JobRow]:
        """List all jobs of a run in order of id."""
        return [_job(row) for row in await self._call("list_jobs", run)]

    async def find_job(self, run: JobId, name: str, index: int | None = None) -> JobId | None:
        """Find a job of a run by name, and an element of an array also by index."""
        return _optional_job(await self._call_value("find_job", run, name, index))

    async def get_jobs(self, jobs: Sequence[JobId]) -> Sequence[types.JobRow]:
        """Get these jobs in this order."""
        return [_job(row) for row in await self._call("get_jobs", jobs)]

    async def filter_ended(self, jobs: Sequence[JobId]) -> AbstractSet[JobId]:
        """Return those of these jobs that have ended."""
        return {JobId(row[0]) for row in await self._call("filter_ended", jobs)}

    async def get_spec(self, job: JobId) -> Mapping[str, Any] | None:
        """Get a job's spec."""
        body: Mapping[str, Any] | None = _body(await self._query("get_spec", job))
        return body

    async def list_specs(self, run: JobId) -> Mapping[JobId, Mapping[str, Any]]:
        """Get the specs of a run's jobs; each text is parsed once."""
        rows = await self._call("list_specs", run)
        bodies = {row["spec"]: json.loads(row["body"]) for row in rows if row["body"] is not None}
        return {JobId(row["job"]): bodies[row["spec"]] for row in rows}

    async def list_blockers(self, job: JobId) -> Sequence[types.Blocker]:
        """List what a job waits for, unfinished upstreams first."""
        return [_blocker(row) for row in await self._call("list_blockers", job)]

    async def list_attempts(self, job: JobId) -> Sequence[types.AttemptRow]:
        """List the ended attempts of a job, oldest first."""
        return [_attempt(row) for row in await self._query("list_attempts", job)]

    async def read_output(self, job: JobId, *, last: int | None = None) -> bytes:
        """Read the output of the newest attempt that has any, or its last bytes."""
        return payloads.join_output(
            [row["data"] for row in await self._query("read_output", job, last)], last
        )

    async def read_output_chunks(
        self, job: JobId, attempt: int, chunk: int = 0
    ) -> Sequence[types.OutputChunk]:
        """Read some chunks of an attempt's output."""
        rows = await self._query(
            "read_output_chunks", job, attempt, chunk, payloads.CHUNKS_PER_READ
        )
        return [types.OutputChunk(row["chunk"], row["data"]) for row in rows]

    async def read_result(self, job: JobId) -> Any:
        """Read a job's result, or None."""
        return _body(await self._query("read_result", job))

    async def count_states(self, run: JobId) -> types.StateCounts:
        """Count a run's jobs by state, without groups."""
        rows = await self._call("count_states", run)
        return types.StateCounts({State(row["state"]): row["count"] for row in rows})

    async def count_workers(self) -> Mapping[tuple[str, str], int]:
        """Count workers by namespace and pool."""
        rows = await self._query("count_workers")
        return {(row["namespace"], row["name"]): row["count"] for row in rows}

    async def has_maintainer(self) -> bool:
        """Return whether a maintainer is elected and its lease is valid."""
        [row] = await self._query("has_maintainer")
        return bool(row["is_elected"])

    async def list_failures(self, run: JobId, limit: int) -> Sequence[types.JobFailure]:
        """List the jobs of a run that failed first."""
        return [_failure(row) for row in await self._call("list_failures", run, limit)]

    async def list_signals(self, run: JobId) -> Mapping[JobId, types.Signal]:
        """List signals to running jobs that have not taken effect yet."""
        rows = await self._query("list_signals", run)
        return {JobId(row["job"]): types.Signal(row["signal"]) for row in rows}


def _body(rows: Sequence[Record]) -> Any:
    return json.loads(rows[0]["body"]) if rows else None


def _optional_job(value: int | None) -> JobId | None:
    return None if value is None else JobId(value)


def _reason(value: str | None) -> Reason | None:
    return None if value is None else Reason(value)


def _run(row: Record | dict[str, Any]) -> types.RunRow:
    values = dict(row)
    values.update(kind=Kind(row["kind"]), metadata=json.loads(row["metadata"]))
    return types.RunRow(**values)


def _summary(row: Record) -> types.RunSummary:
    run = _run({name: row[name] for name in _RUN_FIELDS})
    return types.RunSummary(
        run, _job({name: row[name] for name in _JOB_FIELDS}), row["commands"], row["ended"]
    )


def _job(row: Record | dict[str, Any]) -> types.JobRow:
    values = dict(row)
    values.update(
        kind=Kind(row["kind"]),
        group_id=_optional_job(row["group_id"]),
        state=State(row["state"]),
        reason=_reason(row["reason"]),
    )
    return types.JobRow(**values)


def _blocker(row: Record) -> types.Blocker:
    values = dict(row)
    values.update(kind=Kind(row["kind"]), state=State(row["state"]) if row["state"] else None)
    return types.Blocker(**values)


def _failure(row: Record) -> types.JobFailure:
    return types.JobFailure(**dict(row) | {"reason": Reason(row["reason"])})


def _attempt(row: Record) -> types.AttemptRow:
    values = dict(row)
    values.update(reason=_reason(row["reason"]))
    return types.AttemptRow(**values)

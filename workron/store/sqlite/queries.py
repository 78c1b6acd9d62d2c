"""The reader's door: questions about roots and about single jobs.

One of the doors of `store`; a file is read beside its writer and waits for no lock.
"""

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
from workron.store.sqlite.engine import SqliteVerbs, listed
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


class SqliteReadStore(SqliteVerbs):
    """What can be asked."""

    async def find_run(self, namespace: str, kind: Kind, name: str) -> RunRow | None:
        """Find the newest root of a name."""
        return await self._first("find.find", _root, namespace=namespace, kind=kind, name=name)

    async def list_runs(self, namespace: str | None = None) -> Sequence[RunRow]:
        """List roots, newest first."""
        return await self._list("roots.roots", _root, namespace=namespace)

    async def list_run_summaries(self, namespace: str | None = None) -> Sequence[RunSummary]:
        """List roots, newest first, each with its own row alone."""
        return await self._list("heads.heads", _head, namespace=namespace)

    async def list_jobs(self, root: JobId) -> Sequence[JobRow]:
        """List a root and all its members."""
        return await self._list("jobs.jobs", _job, root=root)

    async def find_job(self, root: JobId, name: str, index: int | None = None) -> JobId | None:
        """Find a job of a root by its name, an element of an array by its index as well."""
        return await self._first("member.member", _id, root=root, name=name, index=index)

    async def get_jobs(self, jobs: Sequence[JobId]) -> Sequence[JobRow]:
        """Give these jobs' rows in this order."""
        return await self._list("standing.standing", _job, jobs=listed(jobs))

    async def filter_ended(self, jobs: Sequence[JobId]) -> AbstractSet[JobId]:
        """Tell which of these jobs have ended."""
        return set(await self._list("ended.ended", _id, jobs=listed(jobs)))

    async def get_spec(self, job: JobId) -> Mapping[str, Any] | None:
        """Give a job's spec; None if there is no such job."""
        body: Mapping[str, Any] | None = await self._first("spec.spec", _body, job=job)
        return body

    async def list_specs(self, root: JobId) -> Mapping[JobId, Mapping[str, Any]]:
        """Give each job's spec, each body decoded once."""
        return await self._read(partial(_specs, root=root))

    async def edges(self, root: JobId) -> Sequence[tuple[JobId, JobId, str]]:
        """List edges into jobs of this root."""
        return await self._list("edges.edges", tuple, root=root)

    async def list_blockers(self, job: JobId) -> Sequence[Blocker]:
        """Say what a job waits for."""
        return await self._list("blockers.blockers", _blocker, job=job)

    async def list_attempts(self, job: JobId) -> Sequence[AttemptRow]:
        """List the ended attempts of a job, first to last."""
        return await self._list("attempts.attempts", _attempt, job=job)

    async def read_output(self, job: JobId, *, last: int | None = None) -> bytes:
        """Give the stored output of the newest attempt that has any, or its last bytes."""
        parts = await self._list("output.output", itemgetter("data"), job=job, last=last)
        return payloads.join_output(parts, last)

    async def read_output_chunks(self, job: JobId, attempt: int, chunk: int = 0) -> Sequence[OutputChunk]:
        """Give some of what an attempt wrote, from this chunk on."""
        about = {"job": job, "attempt": attempt, "chunk": chunk, "most": payloads.CHUNKS_PER_READ}
        return await self._list("pieces.pieces", OutputChunk._make, **about)

    async def read_result(self, job: JobId) -> Any:
        """Give a job's result, or None."""
        return await self._first("result.result", _body, job=job)

    async def count_states(self, root: JobId) -> StateCounts:
        """Count a root's commands by state."""
        rows = await self._list("progress.progress", tuple, root=root)
        return StateCounts({State(state): count for state, count in rows})

    async def queue(self) -> Mapping[tuple[str, str], int]:
        """Count ready jobs by namespace and pool."""
        rows = await self._list("queue.queue", tuple)
        return {(namespace, name): count for namespace, name, count in rows}

    async def count_workers(self) -> Mapping[tuple[str, str], int]:
        """Count workers by namespace and pool."""
        rows = await self._list("workers.workers", tuple)
        return {(namespace, name): count for namespace, name, count in rows}

    async def has_maintainer(self) -> bool:
        """Tell whether a maintainer's lease runs."""
        return bool(await self._list("led.led", tuple))

    async def list_failures(self, root: JobId, limit: int) -> Sequence[JobFailure]:
        """List the commands of a root that failed first."""
        return await self._list("failures.failures", _failure, root=root, limit=limit)

    async def list_signals(self, root: JobId) -> Mapping[JobId, Signal]:
        """Tell what was asked of running jobs of a root."""
        rows = await self._list("marks.marks", tuple, root=root)
        return {JobId(job): Signal(mark) for job, mark in rows}

    async def _list(
        self, statement: str, convert: Callable[[Any], _T], /, **values: Any
    ) -> list[_T]:
        # Converted on the lane's thread: a hundred thousand rows must not stop the event loop.
        return await self._read(lambda tx: [convert(row) for row in tx.rows(statement, **values)])

    async def _first(
        self, statement: str, convert: Callable[[Any], _T], /, **values: Any
    ) -> _T | None:
        found = await self._list(statement, convert, **values)
        return found[0] if found else None


def _specs(tx: Transaction, root: JobId) -> dict[JobId, Mapping[str, Any]]:
    bodies = {row["id"]: json.loads(row["body"]) for row in tx.rows("specs.bodies", root=root)}
    return {JobId(row["job"]): bodies[row["spec"]] for row in tx.rows("specs.jobs", root=root)}


def _id(row: Any) -> JobId:
    return JobId(row["job"])


def _body(row: Any) -> Any:
    return json.loads(row["body"])


def _head(row: Any) -> RunSummary:
    return RunSummary(_root(row), _job(row), row["commands"], row["ended"])


def _root(row: Any) -> RunRow:
    return RunRow(
        root=JobId(row["id"]),
        last=JobId(row["last"]),
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
        root=JobId(row["root"]),
        kind=Kind(row["kind"]),
        name=row["name"],
        index=row["index"],
        member_of=row["member_of"],
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

"""The reader's door: find, roots, jobs, specs, edges, blockers, attempts, output, result, progress,
queue. One of the doors of `store`; a file is read beside its writer and waits for no lock.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.store.protocol import Attempt, Blocker, JobRow, Progress, RootRow
from workron.store.sqlite import micros
from workron.store.sqlite.room import Room

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.store.sqlite.transaction import Transaction


class ReaderRoom(Room):
    """What can be asked."""

    async def find(self, namespace: str, kind: Kind, name: str) -> RootRow | None:
        """Find the newest root of a name."""
        row = await self._row("find.find", namespace=namespace, kind=kind, name=name)
        return None if row is None else _root(row)

    async def roots(self, namespace: str | None = None) -> Sequence[RootRow]:
        """List roots, newest first."""
        return [_root(row) for row in await self._rows("roots.roots", namespace=namespace)]

    async def jobs(self, root: JobId) -> Sequence[JobRow]:
        """List a root and all its members."""
        return [_job(row) for row in await self._rows("jobs.jobs", root=root)]

    async def specs(self, root: JobId) -> Mapping[JobId, Mapping[str, Any]]:
        """Give each job's spec, each body decoded once."""
        return await self._read(partial(_specs, root=root))

    async def edges(self, root: JobId) -> Sequence[tuple[JobId, JobId, str]]:
        """List edges into jobs of this root."""
        rows = await self._rows("edges.edges", root=root)
        return [(JobId(up), JobId(down), condition) for up, down, condition in rows]

    async def blockers(self, job: JobId) -> Sequence[Blocker]:
        """Say what a job waits for."""
        return [_blocker(row) for row in await self._rows("blockers.blockers", job=job)]

    async def attempts(self, root: JobId) -> Sequence[Attempt]:
        """List the ended attempts of a root's jobs."""
        return [_attempt(row) for row in await self._rows("attempts.attempts", root=root)]

    async def output(self, job: JobId) -> bytes:
        """Give the stored output of the newest attempt that has any."""
        return b"".join(row["data"] for row in await self._rows("output.output", job=job))

    async def result(self, job: JobId) -> Any:
        """Give a job's result, or None."""
        row = await self._row("result.result", job=job)
        return None if row is None else json.loads(row["body"])

    async def progress(self, root: JobId) -> Progress:
        """Count a root's commands by state."""
        rows = await self._rows("progress.progress", root=root)
        return Progress({State(row["state"]): row["jobs"] for row in rows})

    async def queue(self) -> Mapping[tuple[str, str], int]:
        """Count ready jobs by namespace and pool."""
        rows = await self._rows("queue.queue")
        return {(row["namespace"], row["name"]): row["jobs"] for row in rows}

    async def _rows(self, statement: str, /, **values: Any) -> list[Any]:
        return await self._read(lambda tx: tx.rows(statement, **values))

    async def _row(self, statement: str, /, **values: Any) -> Any:
        return await self._read(lambda tx: tx.row(statement, **values))


def _specs(tx: Transaction, root: JobId) -> dict[JobId, Mapping[str, Any]]:
    bodies = {row["id"]: json.loads(row["body"]) for row in tx.rows("specs.bodies", root=root)}
    return {JobId(row["job"]): bodies[row["spec"]] for row in tx.rows("specs.jobs", root=root)}


def _root(row: Any) -> RootRow:
    return RootRow(
        root=JobId(row["id"]),
        last=JobId(row["last"]),
        namespace=row["namespace"],
        kind=Kind(row["kind"]),
        name=row["name"],
        uid=UUID(row["uid"]),
        digest=row["digest"],
        submitted_at=micros.to_time(row["submitted_at"]),
        metadata=json.loads(row["metadata"]),
    )


def _job(row: Any) -> JobRow:
    return JobRow(
        **dict(row)
        | {
            "job": JobId(row["job"]),
            "root": JobId(row["root"]),
            "kind": Kind(row["kind"]),
            "state": State(row["state"]),
            "reason": _reason(row),
            "due": micros.to_time(row["due"]),
            "started_at": micros.to_time(row["started_at"]),
            "finished_at": micros.to_time(row["finished_at"]),
        }
    )


def _blocker(row: Any) -> Blocker:
    state = row["state"]
    return Blocker(
        **dict(row) | {"kind": Kind(row["kind"]), "state": None if state is None else State(state)}
    )


def _attempt(row: Any) -> Attempt:
    return Attempt(
        job=JobId(row["job"]),
        attempt=row["attempt"],
        outcome=row["outcome"],
        reason=_reason(row),
        exit_code=row["exit_code"],
        worker=row["worker"],
        started_at=micros.to_time(row["started_at"]),
        finished_at=micros.to_time(row["finished_at"]),
    )


def _reason(row: Any) -> Reason | None:
    return None if row["reason"] is None else Reason(row["reason"])

"""The reader's door: questions that change nothing and wait for no lock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.store import protocol
from workron.store.postgres import statements

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from asyncpg import Record

    from workron.store.postgres.database import Database


class ReaderVerbs:
    """What can be asked."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def _ask(self, verb: str, *values: Any) -> Sequence[Record]:
        return await self._database.fetch(statements.query(verb), *values)

    async def find(self, namespace: str, kind: Kind, name: str) -> protocol.RootRow | None:
        """Find the newest root of a name."""
        rows = await self._ask("find", namespace, kind, name)
        return _root(rows[0]) if rows else None

    async def roots(self, namespace: str | None = None) -> Sequence[protocol.RootRow]:
        """List roots, newest first."""
        return [_root(row) for row in await self._ask("roots", namespace)]

    async def jobs(self, root: JobId) -> Sequence[protocol.JobRow]:
        """List a root and all its members in order of id."""
        return [
            _job(row) for row in await self._database.fetch("SELECT * FROM workron.jobs($1)", root)
        ]

    async def specs(self, root: JobId) -> Mapping[JobId, Mapping[str, Any]]:
        """Give each job's spec; jobs of one array share one object."""
        rows = await self._database.fetch("SELECT * FROM workron.specs($1)", root)
        bodies = {row["spec"]: json.loads(row["body"]) for row in rows if row["body"] is not None}
        return {JobId(row["job"]): bodies[row["spec"]] for row in rows}

    async def edges(self, root: JobId) -> Sequence[tuple[JobId, JobId, str]]:
        """List edges into jobs of this root."""
        rows = await self._ask("edges", root)
        return [
            (JobId(row["upstream"]), JobId(row["downstream"]), row["condition"]) for row in rows
        ]

    async def blockers(self, job: JobId) -> Sequence[protocol.Blocker]:
        """Say what a job waits for, unfinished upstreams first."""
        return [
            _blocker(row)
            for row in await self._database.fetch("SELECT * FROM workron.blockers($1)", job)
        ]

    async def attempts(self, root: JobId) -> Sequence[protocol.Attempt]:
        """List the ended attempts of a root's jobs."""
        return [_attempt(row) for row in await self._ask("attempts", root)]

    async def output(self, job: JobId) -> bytes:
        """Give the stored output of the newest attempt that has any."""
        return b"".join(row["data"] for row in await self._ask("output", job))

    async def result(self, job: JobId) -> Any:
        """Give a job's result, or None."""
        rows = await self._ask("result", job)
        return json.loads(rows[0]["body"]) if rows else None

    async def progress(self, root: JobId) -> protocol.Progress:
        """Count a root's commands by state."""
        rows = await self._database.fetch("SELECT * FROM workron.progress($1)", root)
        return protocol.Progress({State(row["state"]): row["count"] for row in rows})

    async def queue(self) -> Mapping[tuple[str, str], int]:
        """Count ready jobs by namespace and pool."""
        rows = await self._ask("queue")
        return {(row["namespace"], row["name"]): row["count"] for row in rows}


def _optional_job(value: int | None) -> JobId | None:
    return None if value is None else JobId(value)


def _reason(value: str | None) -> Reason | None:
    return None if value is None else Reason(value)


def _root(row: Record) -> protocol.RootRow:
    given = dict(row)
    given.update(kind=Kind(row["kind"]), metadata=json.loads(row["metadata"]))
    return protocol.RootRow(**given)


def _job(row: Record) -> protocol.JobRow:
    given = dict(row)
    given.update(
        kind=Kind(row["kind"]),
        member_of=_optional_job(row["member_of"]),
        state=State(row["state"]),
        reason=_reason(row["reason"]),
    )
    return protocol.JobRow(**given)


def _blocker(row: Record) -> protocol.Blocker:
    given = dict(row)
    given.update(kind=Kind(row["kind"]), state=State(row["state"]) if row["state"] else None)
    return protocol.Blocker(**given)


def _attempt(row: Record) -> protocol.Attempt:
    given = dict(row)
    given.update(reason=_reason(row["reason"]))
    return protocol.Attempt(**given)

"""The maintainer's door: each verb one bounded step, harmless when two take it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workron.core.ids import JobId, WorkerId
from workron.store import types
from workron.store.postgres import functions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from workron.store.postgres.notify import Ring
    from workron.store.postgres.pool import ConnectionPool


class PostgresMaintainerStore:
    """What the one elected maintainer does."""

    def __init__(self, database: ConnectionPool, ring: Ring) -> None:
        self._database = database
        self._ring = ring

    async def elect(self, holder: UUID, lease_seconds: float) -> bool:
        """Become or stay the maintainer; False while another one's lease runs."""
        rows = await self._database.fetch(functions.query("elect"), holder, lease_seconds)
        return bool(rows)

    async def resign(self, holder: UUID) -> None:
        """Give the lease up at once."""
        await self._database.fetch(functions.query("resign"), holder)

    async def list_heartbeats(self) -> Sequence[types.WorkerHeartbeat]:
        """See every worker and its counter."""
        rows = await self._database.fetch(functions.query("list_heartbeats"))
        return [
            types.WorkerHeartbeat(
                WorkerId(row["worker"]),
                types.HeartbeatVersion(row["server"], row["beats"]),
                row["lease_seconds"],
                row["name"],
                row["boot"],
            )
            for row in rows
        ]

    async def reap(
        self, worker: WorkerId, *, sign: types.HeartbeatVersion | None, is_blaming: bool = True
    ) -> types.ReapResult:
        """Take a worker's claims back and forget it, if its sign still is what was seen."""
        rows = await self._database.fetch(
            "SELECT * FROM workron.reap($1, $2, $3, $4)",
            worker,
            sign and sign.server,
            sign and sign.heartbeats,
            is_blaming,
        )
        self._ring()
        head, *moved = rows
        places = [(JobId(row["job"]), row["place"]) for row in moved]
        return types.ReapResult(
            was_reaped=head["was_reaped"],
            requeued=[job for job, place in places if place in ("ready", "waiting")],
            failed=[job for job, place in places if place in ("Expired", "WorkerLost")],
        )

    async def drain(self, worker: WorkerId) -> bool:
        """Let a worker end what it has and claim no more; False if it is not there."""
        return bool(await self._database.fetch_value(functions.query("drain"), worker))

    async def reap_orphans(self, limit: int) -> int:
        """Take back claims whose worker's row is missing."""
        return await self._step("SELECT workron.reap_orphans($1)", limit)

    async def promote(self, limit: int) -> int:
        """Queue deferred jobs that are due."""
        return await self._step("SELECT workron.promote($1)", limit)

    async def propagate(self, limit: int) -> int:
        """Pass ends on that are not passed on yet, and go on with what is left of sweeps."""
        moved = await self._step("SELECT workron.propagate($1)", limit)
        # Each in a transaction of its own: locks that are kept from one to the next can deadlock.
        left = await self._database.fetch(functions.query("sweeps"))
        for row in left:
            await self._database.fetch("SELECT workron.sweep_step($1, $2)", row["run"], limit)
        if left:
            self._ring()
        return moved + len(left)

    async def expire(self, limit: int) -> int:
        """End jobs whose deadline has passed; mark those that run."""
        return await self._step("SELECT workron.expire($1)", limit)

    async def audit(self, limit: int, *, after: int = 0) -> types.AuditResult:
        """Look at so many waiting jobs behind an id."""
        [row] = await self._database.fetch("SELECT * FROM workron.audit($1, $2)", limit, after)
        return types.AuditResult(row["missed"], row["last"])

    async def _step(self, statement: str, limit: int) -> int:
        moved = int(await self._database.fetch_value(statement, limit))
        if moved:
            self._ring()
        return moved

"""The maintainer's interface. Methods with a limit do one bounded step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workron.core.ids import JobId, WorkerId
from workron.core.lease import HeartbeatVersion, WorkerHeartbeat
from workron.store import types
from workron.store.postgres.database import PostgresDatabase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID


class PostgresMaintainerStore(PostgresDatabase):
    """`api.MaintainerStore`."""

    async def elect(self, holder: UUID, lease_seconds: float) -> bool:
        """Become or stay the maintainer."""
        return bool(await self._query("elect", holder, lease_seconds))

    async def resign(self, holder: UUID) -> None:
        """Give up the maintainer's lease."""
        await self._query("resign", holder)

    async def list_heartbeats(self) -> Sequence[WorkerHeartbeat]:
        """List all workers with their heartbeat counters."""
        return [
            WorkerHeartbeat(
                WorkerId(row["worker"]),
                HeartbeatVersion(row["server"], row["heartbeats"]),
                row["lease_seconds"],
                row["name"],
                row["boot"],
            )
            for row in await self._query("list_heartbeats")
        ]

    async def reap(
        self,
        worker: WorkerId,
        *,
        version: HeartbeatVersion | None,
        charge_losses: bool = True,
    ) -> types.ReapResult:
        """Requeue a worker's claims and remove it, if its heartbeat counter is unchanged."""
        server, heartbeats = version or (None, None)
        head, *moved = await self._call("reap", worker, server, heartbeats, charge_losses)
        self._notifier.notify()
        jobs = [(JobId(row["job"]), row["destination"]) for row in moved]
        return types.ReapResult(
            was_reaped=head["was_reaped"],
            requeued=[job for job, destination in jobs if destination in ("ready", "waiting")],
            failed=[job for job, destination in jobs if destination in ("Expired", "WorkerLost")],
        )

    async def drain(self, worker: WorkerId) -> bool:
        """Let a worker finish what it runs and claim no more."""
        return bool(await self._query("drain", worker))

    async def reap_orphans(self, limit: int) -> int:
        """Requeue claims whose worker has no row."""
        return await self._step("reap_orphans", limit)

    async def promote(self, limit: int) -> int:
        """Move deferred jobs that are due to ready."""
        return await self._step("promote", limit)

    async def propagate(self, limit: int) -> int:
        """Propagate ends that were left over, and continue interrupted bulk updates."""
        moved = await self._step("propagate", limit)
        # A transaction for each: locks held from one to the next could deadlock.
        interrupted = await self._query("list_bulk_updates")
        for row in interrupted:
            await self._call("bulk_update_step", row["run"], limit)
        if interrupted:
            self._notifier.notify()
        return moved + len(interrupted)

    async def expire(self, limit: int) -> int:
        """End jobs whose deadline has passed, and signal those that run."""
        return await self._step("expire", limit)

    async def audit(self, limit: int, *, after: int = 0) -> types.AuditResult:
        """Check waiting jobs after an id."""
        [row] = await self._call("audit", limit, after)
        return types.AuditResult(row["missed"], row["last"])

    async def _step(self, name: str, limit: int) -> int:
        moved = int(await self._call_value(name, limit))
        if moved:
            self._notifier.notify()
        return moved

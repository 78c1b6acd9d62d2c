"""The maintainer's interface. Methods with a limit do one bounded step."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from workron.core.ids import WorkerId
from workron.core.lease import HeartbeatVersion, WorkerHeartbeat
from workron.store.sqlite import bulk_update, completion, engine, requeue
from workron.store.sqlite.engine import SqliteDatabase
from workron.store.types import AuditResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.store.sqlite.engine import Transaction
    from workron.store.types import ReapResult


_SERVER: Final = "file"
"""A file has no server that restarts: no commit is ever lost."""


class SqliteMaintainerStore(SqliteDatabase):
    """`api.MaintainerStore`."""

    async def elect(self, holder: UUID, lease_seconds: float) -> bool:
        """Become or stay the maintainer."""
        return await self._write(partial(_elect, holder=holder, lease_seconds=lease_seconds))

    async def resign(self, holder: UUID) -> None:
        """Give up the maintainer's lease."""
        await self._write(lambda tx: tx.run("resign.resign", holder=str(holder)))

    async def list_heartbeats(self) -> Sequence[WorkerHeartbeat]:
        """List all workers. It runs after pending heartbeats."""
        return await self._write(_list_heartbeats)

    async def reap(
        self, worker: WorkerId, *, version: HeartbeatVersion | None, charge_losses: bool = True
    ) -> ReapResult:
        """Requeue a worker's claims and remove it, if its heartbeat counter is unchanged."""
        return await self._write_and_wake(
            partial(requeue.reap, worker=worker, version=version, charge_losses=charge_losses)
        )

    async def drain(self, worker: WorkerId) -> bool:
        """Let a worker finish what it runs and claim no more."""
        return await self._write(lambda tx: tx.run("drain.drain", worker=worker) > 0)

    async def reap_orphans(self, limit: int) -> int:
        """Requeue claims whose worker has no row."""
        return await self._write_and_wake(partial(_reap_orphans, limit=limit))

    async def promote(self, limit: int) -> int:
        """Move deferred jobs that are due to ready."""
        return await self._write_and_wake(partial(_promote, limit=limit))

    async def propagate(self, limit: int) -> int:
        """Propagate ends that were left over, and continue interrupted bulk updates."""
        return await self._write_and_wake(partial(_propagate, limit=limit))

    async def expire(self, limit: int) -> int:
        """End jobs whose deadline has passed, and signal those that run."""
        return await self._write_and_wake(partial(_expire, limit=limit))

    async def audit(self, limit: int, *, after: int = 0) -> AuditResult:
        """Check waiting jobs after an id."""
        row = await self._read(lambda tx: tx.row("audit.audit", limit=limit, after=after))
        return AuditResult(row["missed"], row["last"])


def _elect(tx: Transaction, holder: UUID, lease_seconds: float) -> bool:
    expires = tx.now + engine.seconds_to_micros(lease_seconds)
    return tx.run("elect.elect", holder=str(holder), expires=expires) > 0


def _list_heartbeats(tx: Transaction) -> list[WorkerHeartbeat]:
    return [
        WorkerHeartbeat(
            WorkerId(row["id"]),
            HeartbeatVersion(_SERVER, row["heartbeats"]),
            row["lease_seconds"],
            row["name"],
            UUID(row["boot"]),
        )
        for row in tx.rows("list_heartbeats.list_heartbeats")
    ]


def _reap_orphans(tx: Transaction, limit: int) -> int:
    tx.clear()
    lost = tx.run("reap_orphans.select_claims", limit=limit)
    requeue.requeue_claims(tx, requeue.ORPHANED)
    return lost


def _promote(tx: Transaction, limit: int) -> int:
    tx.clear()
    moved = tx.run("promote.select_due", limit=limit)
    tx.run("promote.delete_deferred")
    completion.update_downstreams(tx)
    return moved


def _propagate(tx: Transaction, limit: int) -> int:
    tx.clear()
    moved = tx.run("propagate.select_unpropagated", limit=limit)
    tx.run("propagate.delete_unpropagated")
    completion.propagate_to_downstreams(tx)
    completion.update_downstreams(tx)
    return moved + bulk_update.continue_updates(tx)


def _expire(tx: Transaction, limit: int) -> int:
    tx.clear()
    moved = tx.run("expire.select_due", limit=limit)
    tx.run("expire.signal_running")
    for table in ("ready", "deferred", "waiting"):
        tx.run(f"expire.select_{table}")
    bulk_update.leave_queues(tx)
    tx.run("expire.delete_deadlines")
    completion.finish_jobs(tx)
    return moved

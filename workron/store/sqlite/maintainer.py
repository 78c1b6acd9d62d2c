"""The maintainer's door: elect, resign, look, reap, reap_orphans, promote, settle, expire, audit.

One of the doors of `store`. Verbs with a limit do one bounded step.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from workron.core.ids import WorkerId
from workron.store.sqlite import bulk_update, completion, engine, requeue
from workron.store.sqlite.engine import SqliteVerbs
from workron.store.types import AuditResult, HeartbeatVersion, WorkerHeartbeat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.store.sqlite.engine import Transaction
    from workron.store.types import ReapResult


_SERVER: Final = "file"
"""A file has no run of a server: no commit of it is ever lost."""


class SqliteMaintainerStore(SqliteVerbs):
    """What the elected maintainer does."""

    async def elect(self, holder: UUID, lease_seconds: float) -> bool:
        """Become or stay the maintainer."""
        return await self._write(partial(_elect, holder=holder, lease_seconds=lease_seconds))

    async def resign(self, holder: UUID) -> None:
        """Give the lease up."""
        await self._write(lambda tx: tx.run("resign.resign", holder=str(holder)))

    async def list_heartbeats(self) -> Sequence[WorkerHeartbeat]:
        """See every worker. It queues behind the beats, so that a stuck writer is no proof."""
        return await self._write(_look)

    async def reap(
        self, worker: WorkerId, *, sign: HeartbeatVersion | None, is_blaming: bool = True
    ) -> ReapResult:
        """Take a worker's claims back, if its sign still is what was seen."""
        return await self._stir(
            partial(requeue.reap, worker=worker, sign=sign, is_blaming=is_blaming)
        )

    async def drain(self, worker: WorkerId) -> bool:
        """Let a worker end what it has and claim no more."""
        return await self._write(lambda tx: tx.run("drain.drain", worker=worker) > 0)

    async def reap_orphans(self, limit: int) -> int:
        """Take back claims whose worker's row is missing."""
        return await self._stir(partial(_reap_orphans, limit=limit))

    async def promote(self, limit: int) -> int:
        """Queue deferred jobs that are due."""
        return await self._stir(partial(_promote, limit=limit))

    async def propagate(self, limit: int) -> int:
        """Pass ends on that are not passed on yet."""
        return await self._stir(partial(_settle, limit=limit))

    async def expire(self, limit: int) -> int:
        """End jobs whose deadline has passed; mark those that run."""
        return await self._stir(partial(_expire, limit=limit))

    async def audit(self, limit: int, *, after: int = 0) -> AuditResult:
        """Look at so many waiting jobs behind an id."""
        row = await self._read(lambda tx: tx.row("audit.audit", limit=limit, after=after))
        return AuditResult(row["missed"], row["last"])


def _elect(tx: Transaction, holder: UUID, lease_seconds: float) -> bool:
    expires = tx.now + engine.seconds_to_micros(lease_seconds)
    return tx.run("elect.elect", holder=str(holder), expires=expires) > 0


def _look(tx: Transaction) -> list[WorkerHeartbeat]:
    return [
        WorkerHeartbeat(
            WorkerId(row["id"]),
            HeartbeatVersion(_SERVER, row["beats"]),
            row["lease_seconds"],
            row["name"],
            UUID(row["boot"]),
        )
        for row in tx.rows("list_heartbeats.list_heartbeats")
    ]


def _reap_orphans(tx: Transaction, limit: int) -> int:
    tx.clear()
    fell = tx.run("reap_orphans.pick", limit=limit)
    requeue.requeue_claims(tx, requeue.ORPHANED)
    return fell


def _promote(tx: Transaction, limit: int) -> int:
    tx.clear()
    moved = tx.run("promote.take", limit=limit)
    tx.run("promote.leave_deferred")
    completion.conclude_groups(tx)
    return moved


def _settle(tx: Transaction, limit: int) -> int:
    tx.clear()
    moved = tx.run("propagate.take", limit=limit)
    tx.run("propagate.leave")
    completion.notify_downstreams(tx)
    completion.conclude_groups(tx)
    return moved + bulk_update.continue_updates(tx)


def _expire(tx: Transaction, limit: int) -> int:
    tx.clear()
    moved = tx.run("expire.pick", limit=limit)
    tx.run("expire.mark")
    for place in ("ready", "deferred", "waiting"):
        tx.run(f"expire.take_{place}")
    bulk_update.leave_places(tx)
    tx.run("expire.drop")
    completion.finish_jobs(tx)
    return moved

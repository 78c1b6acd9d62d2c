"""The door for the operator alone: runs that were made from objects of its cluster, and pools.

One of the doors of `store`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from workron.core import ids
from workron.core.ids import JobId, WorkerId
from workron.core.plan import Kind
from workron.store.sqlite import bulk_update, engine, tokens
from workron.store.sqlite.engine import SqliteVerbs, listed
from workron.store.types import OwnedRun, PoolDemand, PoolLogin, WorkerRow

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from workron.store.sqlite.engine import Transaction
    from workron.store.types import PoolGrant, RunUpdate


class SqliteOperatorStore(SqliteVerbs):
    """What is made of objects, and of their changes."""

    async def find_by_uid(self, uids: Sequence[UUID]) -> Mapping[UUID, OwnedRun]:
        """Find what was made from these objects."""
        found = await self._read(lambda tx: tx.rows("find_by_uid.find_by_uid", uids=listed(uids)))
        return {owned.uid: owned for owned in map(_owned, found)}

    async def list_owned(self, limit: int, *, after: int = 0) -> Sequence[OwnedRun]:
        """List some of those that have not ended."""
        found = await self._read(
            lambda tx: tx.rows("list_owned.list_owned", limit=limit, after=after)
        )
        return [_owned(row) for row in found]

    async def update_run(self, run: JobId, wish: RunUpdate) -> bool:
        """Have all of a run be as its object says now."""
        if not await self._stir(partial(_edit, run=run, wish=wish)):
            return False
        while not await self._stir(partial(bulk_update.update_step, run=run)):
            pass
        return True

    async def list_workers(self) -> Sequence[WorkerRow]:
        """List every worker and what it holds."""
        return [
            _worker(row)
            for row in await self._read(lambda tx: tx.rows("list_workers.list_workers"))
        ]

    async def pool_demand(self) -> Mapping[tuple[str, str], PoolDemand]:
        """Tell what waits for workers, by namespace and pool."""
        found = await self._read(lambda tx: tx.rows("pool_demand.pool_demand"))
        return {
            (row["namespace"], row["name"]): PoolDemand(row["ready"], ids.minted_at(row["oldest"]))
            for row in found
        }

    async def grant_pool(self, admission: PoolGrant) -> PoolLogin:
        """Let workers into a pool by this token, for a year from now."""
        await self._write(partial(_admit, admission=admission))
        return PoolLogin(self.url, None)

    async def granted_pools(self) -> Collection[tuple[str, str]]:
        """List the pools that `admit` was called for."""
        found = await self._read(lambda tx: tx.rows("granted_pools.granted_pools"))
        return {(row["namespace"], row["name"]) for row in found}

    async def revoke_pool(self, namespace: str, pool: str) -> bool:
        """Take back what `admit` gave."""
        return await self._write(partial(_dismiss, namespace=namespace, name=pool))


def _dismiss(tx: Transaction, **pool: str) -> bool:
    if tx.row("revoke_pool.worker", **pool) is not None:
        return False
    tx.run("revoke_pool.revoke_pool", **pool)
    return True


def _admit(tx: Transaction, admission: PoolGrant) -> None:
    pool = {"namespace": admission.namespace, "name": admission.pool}
    tx.run("ensure_pool.make", **pool)
    tx.run("ensure_pool.lease", lease=admission.lease_seconds, **pool)
    tx.run("ensure_pool.drop_expired")
    expires = tx.now + engine.delta_to_micros(tokens.LIFE)
    tx.run("grant_pool.grant_pool", hash=tokens.digest(admission.token), expires=expires, **pool)


def _edit(tx: Transaction, run: JobId, wish: RunUpdate) -> bool:
    if not tx.run("update_run.hear", run=run, generation=wish.generation):
        return False
    old = tx.row("update_run.standing", run=run)
    verb = old and _verb(wish, is_held=bool(old["held"]))
    if old is None or (verb is None and old["priority"] == wish.priority):
        return False
    tx.run(
        "update_run.ask",
        run=run,
        cancelled=wish.is_cancelled,
        held=wish.is_suspended,
        priority=wish.priority,
    )
    priority = None if old["priority"] == wish.priority else wish.priority
    tx.run("sweep.begin", run=run, verb=verb, priority=priority)
    return True


def _verb(wish: RunUpdate, *, is_held: bool) -> str | None:
    if wish.is_cancelled:
        return "cancel"
    if wish.is_suspended == is_held:
        return None
    return "hold" if wish.is_suspended else "resume"


def _worker(row: Any) -> WorkerRow:
    return WorkerRow(
        worker=WorkerId(row["worker"]),
        namespace=row["namespace"],
        pool=row["pool"],
        name=row["name"],
        slots=row["slots"],
        claims=row["held"],
        is_draining=bool(row["draining"]),
    )


def _owned(row: Any) -> OwnedRun:
    return OwnedRun(
        run=JobId(row["run"]),
        uid=UUID(row["uid"]),
        kind=Kind(row["kind"]),
        namespace=row["namespace"],
        name=row["name"],
        generation=row["generation"],
        submitted_at=engine.from_micros(row["submitted_at"]),
        has_ended=bool(row["has_ended"]),
    )

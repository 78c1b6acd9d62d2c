"""The controller's interface: runs made from cluster objects, and pools."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from workron.core import ids
from workron.core.ids import JobId, WorkerId
from workron.core.plan import Kind
from workron.store.sqlite import bulk_update, engine, tokens
from workron.store.sqlite.engine import SqliteDatabase, json_list
from workron.store.types import OwnedRun, PoolDemand, PoolLogin, WorkerRow

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from workron.store.sqlite.engine import Transaction
    from workron.store.types import PoolGrant, RunUpdate


class SqliteOperatorStore(SqliteDatabase):
    """`api.OperatorStore`."""

    async def find_by_uid(self, uids: Sequence[UUID]) -> Mapping[UUID, OwnedRun]:
        """Find the runs made from these objects."""
        found = await self._read(
            lambda tx: tx.rows("find_by_uid.find_by_uid", uids=json_list(uids))
        )
        return {owned.uid: owned for owned in map(_owned, found)}

    async def list_owned(self, limit: int, *, after: int = 0) -> Sequence[OwnedRun]:
        """List unfinished runs made from objects."""
        found = await self._read(
            lambda tx: tx.rows("list_owned.list_owned", limit=limit, after=after)
        )
        return [_owned(row) for row in found]

    async def update_run(self, run: JobId, update: RunUpdate) -> bool:
        """Apply an object's mutable fields to its run."""
        if not await self._write_and_wake(partial(_update_run, run=run, update=update)):
            return False
        while not await self._write_and_wake(partial(bulk_update.update_step, run=run)):
            pass
        return True

    async def list_workers(self) -> Sequence[WorkerRow]:
        """List all workers."""
        return [
            _worker(row)
            for row in await self._read(lambda tx: tx.rows("list_workers.list_workers"))
        ]

    async def pool_demand(self) -> Mapping[tuple[str, str], PoolDemand]:
        """Count ready jobs by namespace and pool."""
        found = await self._read(lambda tx: tx.rows("pool_demand.pool_demand"))
        return {
            (row["namespace"], row["name"]): PoolDemand(row["ready"], ids.minted_at(row["oldest"]))
            for row in found
        }

    async def grant_pool(self, grant: PoolGrant) -> PoolLogin:
        """Allow workers to register in a pool with a token for one year."""
        await self._write(partial(_grant_pool, grant=grant))
        return PoolLogin(self.url, None)

    async def granted_pools(self) -> Collection[tuple[str, str]]:
        """List the pools that were granted and not revoked."""
        found = await self._read(lambda tx: tx.rows("granted_pools.granted_pools"))
        return {(row["namespace"], row["name"]) for row in found}

    async def revoke_pool(self, namespace: str, pool: str) -> bool:
        """Undo `grant_pool`."""
        return await self._write(partial(_revoke_pool, namespace=namespace, name=pool))


def _revoke_pool(tx: Transaction, **pool: str) -> bool:
    if tx.row("revoke_pool.find_worker", **pool) is not None:
        return False
    tx.run("revoke_pool.delete_token", **pool)
    return True


def _grant_pool(tx: Transaction, grant: PoolGrant) -> None:
    pool = {"namespace": grant.namespace, "name": grant.pool}
    tx.run("ensure_pool.insert_pool", **pool)
    tx.run("ensure_pool.set_lease", lease=grant.lease_seconds, **pool)
    tx.run("ensure_pool.delete_expired_tokens")
    expires = tx.now + engine.delta_to_micros(tokens.LIFE)
    tx.run("grant_pool.grant_pool", hash=tokens.digest(grant.token), expires=expires, **pool)


def _update_run(tx: Transaction, run: JobId, update: RunUpdate) -> bool:
    if not tx.run("update_run.set_generation", run=run, generation=update.generation):
        return False
    old = tx.row("update_run.current", run=run)
    operation = old and _operation(update, is_suspended=bool(old["suspended"]))
    if old is None or (operation is None and old["priority"] == update.priority):
        return False
    tx.run(
        "update_run.update_run",
        run=run,
        cancelled=update.is_cancelled,
        suspended=update.is_suspended,
        priority=update.priority,
    )
    priority = None if old["priority"] == update.priority else update.priority
    tx.run("bulk_update.request", run=run, operation=operation, priority=priority)
    return True


def _operation(update: RunUpdate, *, is_suspended: bool) -> str | None:
    if update.is_cancelled:
        return "cancel"
    if update.is_suspended == is_suspended:
        return None
    return "suspend" if update.is_suspended else "resume"


def _worker(row: Any) -> WorkerRow:
    return WorkerRow(
        worker=WorkerId(row["worker"]),
        namespace=row["namespace"],
        pool=row["pool"],
        name=row["name"],
        slots=row["slots"],
        claims=row["claims"],
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

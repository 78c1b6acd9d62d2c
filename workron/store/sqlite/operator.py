"""The interfaces of the controller and of the maintainer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from workron.store import api
from workron.store.sqlite import bulk_update, completion, pools, requeue
from workron.store.sqlite.bulk_update import SqliteBulkUpdates
from workron.store.sqlite.engine import SqliteDatabase
from workron.store.types import PoolLogin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workron.core.ids import JobId, WorkerId
    from workron.core.lease import HeartbeatVersion
    from workron.store.sqlite.engine import Transaction
    from workron.store.types import PoolGrant, ReapResult, RunUpdate


class SqliteOperatorStore(SqliteBulkUpdates, api.OperatorStore):
    """`api.OperatorStore`."""

    async def update_run(self, run: JobId, update: RunUpdate) -> bool:
        return await self._update(run, partial(_update_run, run=run, update=update))

    async def grant_pool(self, grant: PoolGrant) -> PoolLogin:
        await self._write(partial(_grant_pool, grant=grant))
        return PoolLogin(self.url, None)

    async def revoke_pool(self, namespace: str, pool: str) -> bool:
        return await self._write(partial(_revoke_pool, namespace=namespace, name=pool))


def _revoke_pool(tx: Transaction, **pool: str) -> bool:
    if tx.row("revoke_pool.find_worker", **pool) is not None:
        return False
    tx.run("revoke_pool.delete_token", **pool)
    return True


def _grant_pool(tx: Transaction, grant: PoolGrant) -> None:
    pool = pools.ensure_pool(tx, grant.namespace, grant.pool)
    pools.add_token(tx, pool, grant.token, grant.lease_seconds, is_granted=True)


def _update_run(tx: Transaction, run: JobId, update: RunUpdate) -> bool:
    if not tx.run("update_run.set_generation", run=run, generation=update.generation):
        return False
    old = tx.row("update_run.current", run=run)
    if old is None:
        return False
    is_requested = update.is_cancelled or update.is_forced
    is_cancelled, is_forced = old["cancelled"] or is_requested, old["forced"] or update.is_forced
    operation = None
    if is_cancelled > old["cancelled"] or is_forced > old["forced"]:
        operation = "cancel"
    elif not is_cancelled and update.is_suspended != bool(old["suspended"]):
        operation = "suspend" if update.is_suspended else "resume"
    priority = None if old["priority"] == update.priority else update.priority
    if operation is None and priority is None:
        return False
    tx.run(
        "update_run.set_fields",
        run=run,
        cancelled=is_cancelled,
        requested=is_requested,
        forced=is_forced,
        suspended=update.is_suspended and not is_cancelled,
        priority=update.priority,
    )
    tx.run("bulk_update.request", run=run, operation=operation, priority=priority)
    return True


class SqliteMaintainerStore(SqliteDatabase, api.MaintainerStore):
    """`api.MaintainerStore`."""

    async def refresh_scan_starts(self) -> None:
        """Do nothing: SQLite removes the index entries of claimed jobs at once."""

    async def reap(
        self, worker: WorkerId, *, version: HeartbeatVersion | None, charge_losses: bool = True
    ) -> ReapResult:
        return await self._write_and_wake(
            partial(requeue.reap, worker=worker, version=version, charge_losses=charge_losses)
        )

    async def _step(self, operation: str, limit: int) -> int:
        return await self._write_and_wake(lambda tx: _STEPS[operation](tx, limit))


def _reap_orphans(tx: Transaction, limit: int) -> int:
    tx.clear()
    lost = tx.run("reap_orphans", limit=limit)
    requeue.requeue_claims(tx, "Lost", alone=True)
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
    if tx.run("expire.expire_runs"):
        tx.run("expire.request_cancellations")
    tx.run("expire.signal_running")
    for table in ("ready", "deferred", "waiting"):
        tx.run(f"expire.select_{table}")
    bulk_update.leave_queues(tx)
    tx.run("expire.delete_deadlines")
    completion.finish_jobs(tx)
    return moved


_STEPS: Final[Mapping[str, Callable[[Transaction, int], int]]] = {
    "reap_orphans": _reap_orphans,
    "promote": _promote,
    "propagate": _propagate,
    "expire": _expire,
}

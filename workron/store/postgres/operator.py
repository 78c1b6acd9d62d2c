"""The interfaces of the controller and of the maintainer."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from workron.core import errors
from workron.store import api, types
from workron.store.postgres import roles
from workron.store.postgres.database import PostgresDatabase

if TYPE_CHECKING:
    from workron.core.ids import JobId, WorkerId
    from workron.core.lease import HeartbeatVersion


class PostgresOperatorStore(PostgresDatabase, api.OperatorStore):
    """`api.OperatorStore`."""

    async def update_run(self, run: JobId, update: types.RunUpdate) -> bool:
        has_changed = await self._call_value(
            *("update_run", run, update.generation, update.is_cancelled, update.is_forced),
            *(update.is_suspended, update.priority),
        )
        if has_changed:
            await self._finish_bulk_update(run)
        return bool(has_changed)

    async def grant_pool(self, grant: types.PoolGrant) -> types.PoolLogin:
        password = grant.password
        [row] = await self._call(
            "grant_pool",
            *(grant.namespace, grant.pool, grant.token, grant.lease_seconds),
            *(password and roles.scram_verifier(password), grant.connections),
        )
        url = self.url
        if password is not None:
            url = roles.url_with_role(url, row["role"], password)
            await roles.check_login(url)
        return types.PoolLogin(url, row["connections"])

    async def revoke_pool(self, namespace: str, pool: str) -> bool:
        [row] = await self._call("revoke_pool", namespace, pool)
        if row["remaining"] is not None:
            raise errors.PermissionDeniedError(
                f"the role of pool {namespace}/{pool} was disabled but cannot be dropped; as a"
                f" superuser, run `{row['remaining']}`"
            )
        return bool(row["is_revoked"])


class PostgresMaintainerStore(PostgresDatabase, api.MaintainerStore):
    """`api.MaintainerStore`."""

    refreshed_pool = 0
    """The pool after which the next refresh goes on."""

    async def refresh_scan_starts(self) -> None:
        self.refreshed_pool = await self._call_value("refresh_scan_starts", self.refreshed_pool)

    async def reap(
        self, worker: WorkerId, *, version: HeartbeatVersion | None, charge_losses: bool = True
    ) -> types.ReapResult:
        server, heartbeats = version or (None, None)
        head, *jobs = await self._call("reap", worker, server, heartbeats, charge_losses)
        self._notifier.notify()
        return types.ReapResult(
            was_reaped=head["was_reaped"],
            requeued=[row["job"] for row in jobs if row["destination"] in {"ready", "waiting"}],
            failed=[row["job"] for row in jobs if row["destination"] in {"Expired", "WorkerLost"}],
        )

    async def propagate(self, limit: int) -> int:
        moved = await super().propagate(limit)
        # A transaction for each: locks held from one to the next could deadlock.
        await self._call("cancel_failed_runs", limit)
        interrupted = await self._rows("list_bulk_updates", itemgetter("run"))
        for run in interrupted:
            await self._call("bulk_update_step", run, limit)
        if interrupted:
            self._notifier.notify()
        return moved + len(interrupted)

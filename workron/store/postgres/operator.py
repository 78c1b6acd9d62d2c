"""The controller's interface: runs made from cluster objects, and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workron.core import errors, ids
from workron.core.plan import Kind
from workron.store import types
from workron.store.postgres import roles
from workron.store.postgres.database import PostgresDatabase

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from asyncpg import Record

    from workron.core.ids import JobId


class PostgresOperatorStore(PostgresDatabase):
    """`api.OperatorStore`."""

    async def find_by_uid(self, uids: Sequence[UUID]) -> Mapping[UUID, types.OwnedRun]:
        """Find the runs made from these objects."""
        return {row["uid"]: _owned_run(row) for row in await self._query("find_by_uid", uids)}

    async def list_owned(self, limit: int, *, after: int = 0) -> Sequence[types.OwnedRun]:
        """List unfinished runs made from objects."""
        return [_owned_run(row) for row in await self._call("list_owned", limit, after)]

    async def update_run(self, run: JobId, update: types.RunUpdate) -> bool:
        """Apply an object's mutable fields to its run."""
        values = update.generation, update.is_cancelled, update.is_suspended, update.priority
        has_changed = await self._call_value("update_run", run, *values)
        if has_changed:
            await self._finish_bulk_update(run)
        return bool(has_changed)

    async def list_workers(self) -> Sequence[types.WorkerRow]:
        """List all workers."""
        return [types.WorkerRow(**row) for row in await self._query("list_workers")]

    async def pool_demand(self) -> Mapping[tuple[str, str], types.PoolDemand]:
        """Count ready jobs by namespace and pool."""
        return {
            (row["namespace"], row["name"]): types.PoolDemand(
                row["ready"], ids.minted_at(row["oldest"])
            )
            for row in await self._query("pool_demand")
        }

    async def grant_pool(self, grant: types.PoolGrant) -> types.PoolLogin:
        """Allow workers to register in a pool, as a role of this pool if a password is given."""
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

    async def granted_pools(self) -> Collection[tuple[str, str]]:
        """List the pools that were granted and not revoked."""
        return {(row["namespace"], row["name"]) for row in await self._query("granted_pools")}

    async def revoke_pool(self, namespace: str, pool: str) -> bool:
        """Undo `grant_pool`."""
        [row] = await self._call("revoke_pool", namespace, pool)
        if row["remaining"] is not None:
            raise errors.PermissionDeniedError(
                f"the role of pool {namespace}/{pool} was disabled but cannot be dropped; as a"
                f" superuser, run `{row['remaining']}`"
            )
        return bool(row["is_revoked"])


def _owned_run(row: Record) -> types.OwnedRun:
    return types.OwnedRun(**dict(row) | {"kind": Kind(row["kind"])})

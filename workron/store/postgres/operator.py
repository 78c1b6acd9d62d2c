"""The door for the operator alone: runs that were made from objects of its cluster, and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workron.core import errors, ids
from workron.core.plan import Kind
from workron.store import types
from workron.store.postgres import functions, roles
from workron.store.postgres.submit import BulkUpdates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from uuid import UUID

    from asyncpg import Record

    from workron.core.ids import JobId
    from workron.store.postgres.pool import ConnectionPool


class PostgresOperatorStore:
    """What is made of objects, and of their changes."""

    def __init__(self, database: ConnectionPool, ring: Callable[[], None]) -> None:
        self._database = database
        self._sweeps = BulkUpdates(database, ring)

    async def find_by_uid(self, uids: Sequence[UUID]) -> Mapping[UUID, types.OwnedRun]:
        """Find what was made from these objects."""
        rows = await self._database.fetch(functions.query("find_by_uid"), uids)
        return {row["uid"]: _owned(row) for row in rows}

    async def list_owned(self, limit: int, *, after: int = 0) -> Sequence[types.OwnedRun]:
        """List some of those that have not ended."""
        rows = await self._database.fetch(functions.call("list_owned", 2), limit, after)
        return [_owned(row) for row in rows]

    async def update_run(self, run: JobId, wish: types.RunUpdate) -> bool:
        """Have all of a run be as its object says now."""
        asked = wish.generation, wish.is_cancelled, wish.is_suspended, wish.priority
        is_asked = await self._database.fetch_value(functions.call("update_run", 5), run, *asked)
        if is_asked:
            await self._sweeps.finish(run)
        return bool(is_asked)

    async def list_workers(self) -> Sequence[types.WorkerRow]:
        """List every worker and what it holds."""
        return [_worker(row) for row in await self._database.fetch(functions.query("list_workers"))]

    async def pool_demand(self) -> Mapping[tuple[str, str], types.PoolDemand]:
        """Tell what waits for workers, by namespace and pool."""
        rows = await self._database.fetch(functions.query("pool_demand"))
        return {
            (row["namespace"], row["name"]): types.PoolDemand(
                row["ready"], ids.minted_at(row["oldest"])
            )
            for row in rows
        }

    async def grant_pool(self, admission: types.PoolGrant) -> types.PoolLogin:
        """Let workers into a pool by this token, as a role of the pool's own."""
        password = admission.password
        asked = (
            *(admission.namespace, admission.pool, admission.token, admission.lease_seconds),
            *(password and roles.scram_verifier(password), admission.connections),
        )
        [row] = await self._database.fetch(
            "SELECT * FROM workron.grant_pool($1, $2, $3, $4, $5, $6)", *asked
        )
        url = self._database.url
        if password is not None:
            url = roles.url_with_role(url, row["role"], password)
            await roles.check_login(url)
        return types.PoolLogin(url, row["connections"])

    async def granted_pools(self) -> Collection[tuple[str, str]]:
        """List the pools that `admit` was called for."""
        rows = await self._database.fetch(functions.query("granted_pools"))
        return {(row["namespace"], row["name"]) for row in rows}

    async def revoke_pool(self, namespace: str, pool: str) -> bool:
        """Take back what `admit` gave."""
        [row] = await self._database.fetch(functions.call("revoke_pool", 2), namespace, pool)
        if row["rest"] is not None:
            raise errors.PermissionDeniedError(
                f"the role of pool {namespace}/{pool} cannot be dropped, and nothing can be done"
                f" with it: let a superuser run `{row['rest']}`"
            )
        return bool(row["is_dismissed"])


def _worker(row: Record) -> types.WorkerRow:
    about = dict(row)
    return types.WorkerRow(is_draining=about.pop("draining"), **about)


def _owned(row: Record) -> types.OwnedRun:
    return types.OwnedRun(**dict(row) | {"kind": Kind(row["kind"])})

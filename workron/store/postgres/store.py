"""Opening a PostgreSQL store: all interfaces, or the one of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from workron.core import errors
from workron.store import api
from workron.store.postgres import driver_errors, functions, schema
from workron.store.postgres.operator import PostgresMaintainerStore, PostgresOperatorStore
from workron.store.postgres.pool import PoolLimits, open_pool
from workron.store.postgres.submit import PostgresSubmitStore
from workron.store.postgres.worker import PostgresWorkerStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workron.core.clock import Rng
    from workron.store.postgres.pool import ConnectionPool


class PostgresStore(
    PostgresWorkerStore,
    PostgresSubmitStore,
    PostgresOperatorStore,
    PostgresMaintainerStore,
    api.Store,
):
    """All interfaces of one database."""


_CONNECTIONS: Final = 4
_WORKER_CONNECTIONS: Final = 2
"""For any number of slots: an agent makes one call after the other."""
_LIMITS: Final = PoolLimits()
_WORKER_LIMITS: Final = PoolLimits(statement_seconds=15.0)
"""A worker's calls are small. After this time one is given up on a dead line, and repeated."""
_WORKER_FUNCTIONS: Final = frozenset(
    {"register", "heartbeat", "claim", "complete", "release", "append_output", "deregister"}
)
_HAS_SCHEMA: Final = "SELECT 1 FROM pg_namespace WHERE nspname = 'workron'"
_FORBIDDEN: Final = """
    SELECT proname::text AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = 'workron' AND proname = ANY ($1)
      AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE'))
    ORDER BY 1"""

_Opened = TypeVar("_Opened", bound=PostgresWorkerStore)


async def open_postgres(url: str, *, rng: Rng) -> PostgresStore:
    """Open a database. SchemaError if this program does not support its schema."""
    return await _open(PostgresStore, url, rng, schema.check, connections=_CONNECTIONS)


async def open_worker(url: str, *, rng: Rng) -> PostgresWorkerStore:
    """Open a database for a worker. Its role needs to call only the functions of a worker."""
    return await _open(
        *(PostgresWorkerStore, url, rng, _check_worker_functions),
        connections=_WORKER_CONNECTIONS,
        limits=_WORKER_LIMITS,
    )


async def _open(
    kind: type[_Opened],
    url: str,
    rng: Rng,
    check: Callable[[ConnectionPool], Awaitable[None]],
    *,
    connections: int,
    limits: PoolLimits = _LIMITS,
) -> _Opened:
    database = await open_pool(url, rng=rng, connections=connections, limits=limits)
    try:
        await check(database)
        heartbeats = await open_pool(url, rng=rng, connections=1, limits=limits)
    except BaseException:
        await database.close()
        raise
    store = kind(database, heartbeats, rng)
    await store.listen()
    return store


async def _check_worker_functions(database: ConnectionPool) -> None:
    """Raise SchemaError or PermissionDeniedError unless a worker can use the database.

    It reads only the system catalogs, which are open to every role. A worker's role may not read
    the table of migrations, and the signatures of the functions are all that a worker relies on.
    """
    where = driver_errors.redact_url(database.url)
    migrate = driver_errors.migrate_hint(database.url)
    if not await database.fetch(_HAS_SCHEMA):
        raise errors.SchemaMissingError(f"{where} has no Workron schema; create it with {migrate}")
    missing = await functions.missing_functions(database, _WORKER_FUNCTIONS)
    if missing:
        raise errors.SchemaError(
            f"{where} lacks {'; '.join(missing)}: bring it up to date with {migrate}, or use the"
            " version of workron that created it"
        )
    forbidden = [row["name"] for row in await database.fetch(_FORBIDDEN, sorted(_WORKER_FUNCTIONS))]
    if forbidden:
        raise errors.PermissionDeniedError(
            f"{where}: this role may not call {', '.join(forbidden)}; as the owner of the schema"
            f" `workron`, run `SELECT workron.grant_worker('"
            f"{driver_errors.role_in_url(database.url)}')`"
        )

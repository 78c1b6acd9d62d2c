"""All doors of one PostgreSQL database, put together. Called by `connect` and by the tests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from workron.core import errors
from workron.store.postgres import driver_errors, functions, schema
from workron.store.postgres.maintainer import PostgresMaintainerStore
from workron.store.postgres.notify import Notifier
from workron.store.postgres.operator import PostgresOperatorStore
from workron.store.postgres.pool import ConnectionPool, open_pool
from workron.store.postgres.queries import PostgresReadStore
from workron.store.postgres.submit import PostgresSubmitStore
from workron.store.postgres.worker import PostgresWorkerVerbs
from workron.store.wakeup import Wakeup

if TYPE_CHECKING:
    from workron.core.clock import Rng
    from workron.core.ids import SessionKey


_CONNECTIONS: Final = 4


class PostgresStore(
    PostgresWorkerVerbs,
    PostgresSubmitStore,
    PostgresOperatorStore,
    PostgresMaintainerStore,
    PostgresReadStore,
):
    """A store on PostgreSQL."""

    def __init__(self, database: ConnectionPool, beats: ConnectionPool, rng: Rng) -> None:
        self._wakeup = Wakeup()
        self._bell = Notifier(database, self._wakeup)
        PostgresWorkerVerbs.__init__(self, database, beats, self._bell.ring)
        PostgresSubmitStore.__init__(self, database, rng, self._bell)
        PostgresOperatorStore.__init__(self, database, self._bell.ring)
        PostgresMaintainerStore.__init__(self, database, self._bell.ring)
        PostgresReadStore.__init__(self, database)
        self.url = database.url

    async def listen(self) -> None:
        """Hear of work from other processes."""
        await self._bell.listen()

    async def wait_for_work(self, timeout_seconds: float, worker: SessionKey | None = None) -> None:
        """Return soon after something became ready or ended, or after the timeout."""
        await self._wakeup.wait(timeout_seconds, worker)

    async def close(self) -> None:
        """Give all connections back."""
        await self._bell.close()
        await asyncio.gather(self._beats.close(), self._database.close())


async def open_postgres(url: str, *, rng: Rng) -> PostgresStore:
    """Open a database that has a schema this program knows."""
    database = await open_pool(url, rng=rng, connections=_CONNECTIONS)
    try:
        await schema.check(database)
        beats = await open_pool(url, rng=rng, connections=1)
    except BaseException:
        await database.close()
        raise
    store = PostgresStore(database, beats, rng)
    await store.listen()
    return store


_WORKER_STORE_CONNECTIONS: Final = 2
"""For verbs, however many slots: an agent exchanges everything in one call after the other. One
more beats, and one listens."""
_STATEMENT_SECONDS: Final = 15.0
"""A worker's verbs are small. On a line that went silent one is given up, and repeated, so soon."""
_VERBS: Final = frozenset(
    {"register", "heartbeat", "claim", "complete", "release", "append_output", "deregister"}
)
_SCHEMA: Final = "SELECT 1 FROM pg_namespace WHERE nspname = 'workron'"
_RIGHTS: Final = """
    SELECT proname::text AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = 'workron' AND proname = ANY ($1)
      AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE'))
    ORDER BY 1"""


class PostgresWorkerStore(PostgresWorkerVerbs):
    """The worker's door of a PostgreSQL."""

    def __init__(self, database: ConnectionPool, beats: ConnectionPool) -> None:
        self._wakeup = Wakeup()
        self._bell = Notifier(database, self._wakeup)
        super().__init__(database, beats, self._bell.ring)
        self.url = database.url

    async def listen(self) -> None:
        """Hear of work from other processes."""
        await self._bell.listen()

    async def wait_for_work(self, timeout_seconds: float, worker: SessionKey | None = None) -> None:
        """Return soon after something became ready or ended, or after the timeout."""
        await self._wakeup.wait(timeout_seconds, worker)

    async def close(self) -> None:
        """Give all connections back."""
        await self._bell.close()
        await asyncio.gather(self._beats.close(), self._database.close())


async def open_worker(url: str, *, rng: Rng) -> PostgresWorkerStore:
    """Open a database whose verbs are those that this program calls, and that its role may call."""
    database = await open_pool(
        url, rng=rng, connections=_WORKER_STORE_CONNECTIONS, statement_seconds=_STATEMENT_SECONDS
    )
    try:
        await _check(database)
        beats = await open_pool(url, rng=rng, connections=1, statement_seconds=_STATEMENT_SECONDS)
    except BaseException:
        await database.close()
        raise
    store = PostgresWorkerStore(database, beats)
    await store.listen()
    return store


async def _check(database: ConnectionPool) -> None:
    """Raise SchemaError or StoreRightsError unless this role can work here.

    The catalogue tells it, which every role may read: the record of migrations is closed to a
    worker's, and a function that gave a version would be one more to grant. A verb's signature is
    what a program relies on; what stands behind it is the database's.
    """
    where = driver_errors.redact_url(database.url)
    if not await database.fetch(_SCHEMA):
        raise errors.SchemaMissingError(
            f"{where} has no Workron schema; make it with "
            f"{driver_errors.migrate_hint(database.url)}"
        )
    lacking = await functions.missing_functions(database, _VERBS)
    if lacking:
        raise errors.SchemaError(
            f"{where} lacks {'; '.join(lacking)}: bring it up to date with"
            f" {driver_errors.migrate_hint(database.url)}, or"
            f" take the version of workron that made it"
        )
    closed = [row["name"] for row in await database.fetch(_RIGHTS, sorted(_VERBS))]
    if closed:
        raise errors.PermissionDeniedError(
            f"{where}: this role may not call {', '.join(closed)}; let the owner of the schema"
            f" `workron` run `SELECT workron.grant_worker('"
            f"{driver_errors.role_in_url(database.url)}')`"
        )

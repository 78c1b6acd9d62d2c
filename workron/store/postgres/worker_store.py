"""A PostgreSQL database as a worker opens it: its verbs, on few connections, and nothing else.

Called by `connect`, with a role that `workron.grant_worker` was called for or one that can do more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from workron.core import errors
from workron.store.postgres import faults, functions
from workron.store.postgres.bell import Bell
from workron.store.postgres.database import Database, open_database
from workron.store.postgres.worker import WorkerVerbs
from workron.store.wakeup import Wakeup

if TYPE_CHECKING:
    from workron.core.ids import SessionKey
    from workron.core.ports import Rng

_CONNECTIONS: Final = 2
"""For verbs, however many slots: an agent exchanges everything in one call after the other. One
more beats, and one listens."""
_STATEMENT_SECONDS: Final = 15.0
"""A worker's verbs are small. On a line that went silent one is given up, and repeated, so soon."""
_VERBS: Final = frozenset(
    {"register", "beat", "claim", "complete", "release", "append_output", "leave"}
)
_SCHEMA: Final = "SELECT 1 FROM pg_namespace WHERE nspname = 'workron'"
_RIGHTS: Final = """
    SELECT proname::text AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = 'workron' AND proname = ANY ($1)
      AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE'))
    ORDER BY 1"""


class PostgresWorkerStore(WorkerVerbs):
    """The worker's door of a PostgreSQL."""

    def __init__(self, database: Database, beats: Database) -> None:
        self._wakeup = Wakeup()
        self._bell = Bell(database, self._wakeup)
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
    database = await open_database(
        url, rng=rng, connections=_CONNECTIONS, statement_seconds=_STATEMENT_SECONDS
    )
    try:
        await _check(database)
        beats = await open_database(
            url, rng=rng, connections=1, statement_seconds=_STATEMENT_SECONDS
        )
    except BaseException:
        await database.close()
        raise
    store = PostgresWorkerStore(database, beats)
    await store.listen()
    return store


async def _check(database: Database) -> None:
    """Raise SchemaError or StoreRightsError unless this role can work here.

    The catalogue tells it, which every role may read: the record of migrations is closed to a
    worker's, and a function that gave a version would be one more to grant. A verb's signature is
    what a program relies on; what stands behind it is the database's.
    """
    where = faults.shown(database.url)
    if not await database.fetch(_SCHEMA):
        raise errors.SchemaMissingError(
            f"{where} has no Workron schema; make it with {faults.migrating(database.url)}"
        )
    lacking = await functions.lacking(database, _VERBS)
    if lacking:
        raise errors.SchemaError(
            f"{where} lacks {'; '.join(lacking)}: bring it up to date with"
            f" {faults.migrating(database.url)}, or take the version of workron that made it"
        )
    closed = [row["name"] for row in await database.fetch(_RIGHTS, sorted(_VERBS))]
    if closed:
        raise errors.StoreRightsError(
            f"{where}: this role may not call {', '.join(closed)}; let the owner of the schema"
            f" `workron` run `SELECT workron.grant_worker('{faults.role_of(database.url)}')`"
        )

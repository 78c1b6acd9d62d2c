"""All doors of one PostgreSQL database, put together. Called by `connect` and by the tests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from workron.store.postgres import schema
from workron.store.postgres.bell import Bell
from workron.store.postgres.database import Database, open_database
from workron.store.postgres.maintain import MaintainerVerbs
from workron.store.postgres.operator import OperatorVerbs
from workron.store.postgres.read import ReaderVerbs
from workron.store.postgres.submit import SubmitVerbs
from workron.store.postgres.worker import WorkerVerbs
from workron.store.wakeup import Wakeup

if TYPE_CHECKING:
    from workron.core.ids import SessionKey
    from workron.core.ports import Rng

_CONNECTIONS: Final = 4


class PostgresStore(WorkerVerbs, SubmitVerbs, OperatorVerbs, MaintainerVerbs, ReaderVerbs):
    """A store on PostgreSQL."""

    def __init__(self, database: Database, beats: Database, rng: Rng) -> None:
        self._wakeup = Wakeup()
        self._bell = Bell(database, self._wakeup)
        WorkerVerbs.__init__(self, database, beats, self._bell.ring)
        SubmitVerbs.__init__(self, database, rng, self._bell)
        OperatorVerbs.__init__(self, database, self._bell.ring)
        MaintainerVerbs.__init__(self, database, self._bell.ring)
        ReaderVerbs.__init__(self, database)
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
    database = await open_database(url, rng=rng, connections=_CONNECTIONS)
    try:
        await schema.check(database)
        beats = await open_database(url, rng=rng, connections=1)
    except BaseException:
        await database.close()
        raise
    store = PostgresStore(database, beats, rng)
    await store.listen()
    return store

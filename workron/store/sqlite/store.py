"""The store on SQLite: all doors in one class, and the opening of a file or of memory.

Called by `workron.store.connect` and by tests.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workron.core import ids
from workron.store.sqlite import connection, engine, schema
from workron.store.sqlite.engine import WriterThread
from workron.store.sqlite.maintainer import SqliteMaintainerStore
from workron.store.sqlite.operator import SqliteOperatorStore
from workron.store.sqlite.queries import SqliteReadStore
from workron.store.sqlite.submit import SqliteSubmitStore
from workron.store.sqlite.worker import SqliteWorkerVerbs

if TYPE_CHECKING:
    import sqlite3
    from uuid import UUID

    from workron.core.clock import Clock, Rng
    from workron.core.ids import SessionKey


_MEMORY = ":memory:"


class SqliteStore(
    SqliteWorkerVerbs,
    SqliteSubmitStore,
    SqliteOperatorStore,
    SqliteMaintainerStore,
    SqliteReadStore,
):
    """One SQLite database; keeps `workron.store.api.Store`."""

    async def wait_for_work(self, timeout_seconds: float, worker: SessionKey | None = None) -> None:
        """Return soon after a verb of this object made something ready or ended it.

        What another process wrote to the file is found by looking.
        """
        await self._wakeup.wait(timeout_seconds, worker)

    async def close(self) -> None:
        """Work off what was asked, then give the connections back."""
        await self._reader.close()
        await self._writer.close()


async def open_sqlite(
    path: str | os.PathLike[str] | None, *, clock: Clock, rng: Rng
) -> SqliteStore:
    """Open a file, made and migrated if need be; None: a database in memory."""
    place = _MEMORY if path is None else os.fspath(path)
    writer = WriterThread(
        partial(
            _open_writer, place, now=engine.to_micros(clock.now()), identity=ids.mint_uuid(rng)
        ),
        begin="BEGIN IMMEDIATE",
        place=place,
        clock=clock,
    )
    await writer.open()
    reader = writer if path is None else await _open_reader(writer, place, clock)
    url = "memory:" if path is None else f"sqlite:///{place}"
    return SqliteStore(url, writer=writer, reader=reader, clock=clock, rng=rng)


async def _open_reader(writer: WriterThread, place: str, clock: Clock) -> WriterThread:
    opener = partial(connection.open_reader, Path(place))
    reader = WriterThread(opener, begin="BEGIN", place=place, clock=clock)
    try:
        await reader.open()
    except BaseException:
        await writer.close()
        raise
    return reader


def _open_writer(place: str, now: int, identity: UUID) -> sqlite3.Connection:
    is_memory = place == _MEMORY
    opened = connection.open_memory() if is_memory else connection.open_writer(Path(place))
    try:
        schema.migrate(opened, place=place, now=now, identity=identity)
        connection.add_scratch(opened)
    except BaseException:
        opened.close()
        raise
    return opened

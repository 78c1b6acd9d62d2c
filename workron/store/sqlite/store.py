"""Opening a SQLite store in a file or in memory."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workron.core import ids
from workron.store import api
from workron.store.sqlite import connection, engine, schema
from workron.store.sqlite.engine import WriterThread
from workron.store.sqlite.operator import SqliteMaintainerStore, SqliteOperatorStore
from workron.store.sqlite.submit import SqliteSubmitStore
from workron.store.sqlite.worker import SqliteWorkerStore

if TYPE_CHECKING:
    import sqlite3
    from uuid import UUID

    from workron.core.clock import Clock, Rng


_MEMORY = ":memory:"


class SqliteStore(
    SqliteWorkerStore,
    SqliteSubmitStore,
    SqliteOperatorStore,
    SqliteMaintainerStore,
    api.Store,
):
    """All interfaces of one database."""


async def open_sqlite(
    path: str | os.PathLike[str] | None, *, clock: Clock, rng: Rng
) -> SqliteStore:
    """Open a file, which is created and migrated if needed; None: a database in memory."""
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

"""Opening stores and connections for the tests of this folder."""

import random
import sqlite3
from pathlib import Path
from uuid import UUID

from tests.store.behaviour.databases import FakeClock
from workron.store.sqlite import connection, schema
from workron.store.sqlite.store import SqliteStore, open_sqlite

IDENTITY = UUID(int=1)


async def open_store(path: Path | None) -> SqliteStore:
    """Open another store on `path`, or a new one in memory."""
    return await open_sqlite(path, clock=FakeClock(), rng=random.Random())


def open_bare() -> sqlite3.Connection:
    """Open a migrated database in memory without a store."""
    opened = connection.open_memory()
    schema.migrate(opened, place=":memory:", now=0, identity=IDENTITY)
    connection.add_scratch(opened)
    return opened

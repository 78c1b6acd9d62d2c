"""The databases of the stores under test: how to open a store, advance its clock, and run SQL.

conftest.py makes one for each test; `harness.Harness` works with any of them.
"""

import asyncio
import contextlib
import random
import secrets
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol
from urllib import parse

import asyncpg

from workron.store import api
from workron.store.postgres import store
from workron.store.sqlite.store import open_sqlite

_START = datetime(2026, 1, 1, tzinfo=UTC)

_CLEAR = """
DO $$
DECLARE statement text;
BEGIN
    FOR statement IN
        SELECT format('DELETE FROM workron.%I', tablename) FROM pg_tables
        WHERE schemaname = 'workron' AND tablename NOT IN ('migration', 'meta', 'submit_lock')
    LOOP
        EXECUTE statement;
    END LOOP;
END $$
"""


class FakeClock:
    """A clock that only the test advances."""

    def __init__(self) -> None:
        self.time = _START

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return (self.time - _START).total_seconds()


class DatabaseUnderTest(Protocol):
    """One database, and the clock that its stores read."""

    is_persistent: bool
    """Whether another store object sees the same data."""
    clock: FakeClock

    async def clear(self) -> None:
        """Empty it, and reset the clock."""

    async def open(self) -> api.Store:
        """Open another store on the same database."""

    async def advance(self, by: timedelta) -> None:
        """Advance the clock of all its stores."""

    async def execute(self, statement: str) -> None:
        """Run SQL without the store."""

    async def count_rows(self, table: str) -> int:
        """Count the rows of a table without the store."""

    async def close(self) -> None:
        """Close the connections of this object."""


class SqliteUnderTest:
    """A file, or a database in memory if `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.is_persistent = path is not None
        self.clock = FakeClock()

    async def clear(self) -> None:
        assert self.path is None or not self.path.exists()

    async def open(self) -> api.Store:
        return await open_sqlite(self.path, clock=self.clock, rng=random.Random())

    async def advance(self, by: timedelta) -> None:
        self.clock.time += by

    async def execute(self, statement: str) -> None:
        assert self.path is not None, "a database in memory has one connection"
        connection = sqlite3.connect(self.path)
        with connection:
            connection.execute(statement)
        connection.close()

    async def count_rows(self, table: str) -> int:
        assert self.path is not None, "a database in memory has one connection"
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            [[count]] = connection.execute(f"SELECT count(*) FROM {table}")
        return int(count)

    async def close(self) -> None:
        pass


class PostgresUnderTest:
    """A database whose `workron.now()` returns the time of the clock."""

    is_persistent = True

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.clock = FakeClock()
        self._connection: asyncpg.Connection | None = None

    async def clear(self) -> None:
        await self.execute(_CLEAR)
        await self.advance(timedelta())

    async def open(self) -> api.Store:
        return await store.open_postgres(self.dsn, rng=random.Random())

    async def advance(self, by: timedelta) -> None:
        self.clock.time += by
        await self.execute(
            "CREATE OR REPLACE FUNCTION workron.now() RETURNS timestamptz LANGUAGE sql VOLATILE "
            f"PARALLEL SAFE AS $$ SELECT timestamptz '{self.clock.time.isoformat()}' $$"
        )

    async def execute(self, statement: str) -> None:
        await (await self._connect()).execute(statement)

    async def count_rows(self, table: str) -> int:
        return int(await (await self._connect()).fetchval(f"SELECT count(*) FROM {table}"))

    async def _connect(self) -> asyncpg.Connection:
        if self._connection is None:
            self._connection = await asyncpg.connect(
                self.dsn, server_settings={"search_path": "workron"}
            )
        return self._connection

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


@contextlib.contextmanager
def copied_database(admin_dsn: str, template: str) -> Iterator[str]:
    """Copy a database, yield the URL of the copy, and drop it at the end."""
    name = f"workron_behaviour_{secrets.token_hex(6)}"
    run_statement(admin_dsn, f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield parse.urlsplit(admin_dsn)._replace(path=f"/{name}").geturl()
    finally:
        run_statement(admin_dsn, f"DROP DATABASE {name} WITH (FORCE)")


def run_statement(dsn: str, statement: str) -> None:
    async def work() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    # A loop of its own, so that the one that pytest-asyncio keeps for the test stays in place.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(work())

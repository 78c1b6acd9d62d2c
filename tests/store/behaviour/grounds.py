"""Where a store under test lives: how to open it, turn its clock, and reach behind its door.

Made by conftest.py, one for each test; `harness.Harness` works on top of any of them.
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


class HandClock:
    """A clock that stands still until somebody turns it."""

    def __init__(self) -> None:
        self.time = _START

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return (self.time - _START).total_seconds()


class Ground(Protocol):
    """One database, and the clock that its stores read."""

    is_lasting: bool
    """Whether another store object sees the same data."""
    clock: HandClock

    async def clear(self) -> None:
        """Make it empty, at the start of all time."""

    async def open(self) -> api.Store:
        """Open another store on the same database."""

    async def turn(self, by: timedelta) -> None:
        """Turn the clock of all its stores."""

    async def meddle(self, statement: str) -> None:
        """Run SQL behind the store's back."""

    async def close(self) -> None:
        """Leave it as it is."""


class SqliteGround:
    """A file, or memory when there is no path."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.is_lasting = path is not None
        self.clock = HandClock()

    async def clear(self) -> None:
        assert self.path is None or not self.path.exists()

    async def open(self) -> api.Store:
        return await open_sqlite(self.path, clock=self.clock, rng=random.Random())

    async def turn(self, by: timedelta) -> None:
        self.clock.time += by

    async def meddle(self, statement: str) -> None:
        assert self.path is not None, "memory has no back door"
        connection = sqlite3.connect(self.path)
        with connection:
            connection.execute(statement)
        connection.close()

    async def close(self) -> None:
        pass


class PostgresGround:
    """A database whose `workron.now()` was replaced by the hand-turned time."""

    is_lasting = True

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.clock = HandClock()
        self._connection: asyncpg.Connection | None = None

    async def clear(self) -> None:
        await self.meddle(_CLEAR)
        await self.turn(timedelta())

    async def open(self) -> api.Store:
        return await store.open_postgres(self.dsn, rng=random.Random())

    async def turn(self, by: timedelta) -> None:
        self.clock.time += by
        await self.meddle(
            "CREATE OR REPLACE FUNCTION workron.now() RETURNS timestamptz LANGUAGE sql VOLATILE "
            f"PARALLEL SAFE AS $$ SELECT timestamptz '{self.clock.time.isoformat()}' $$"
        )

    async def meddle(self, statement: str) -> None:
        if self._connection is None:
            self._connection = await asyncpg.connect(
                self.dsn, server_settings={"search_path": "workron"}
            )
        await self._connection.execute(statement)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


@contextlib.contextmanager
def copied_database(admin_dsn: str, template: str) -> Iterator[str]:
    """Copy a database, give the DSN of the copy, and drop it in the end."""
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

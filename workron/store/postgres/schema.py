"""Bringing a PostgreSQL database to this program's schema, or telling that it is not there.

Forward only, in one transaction, under a lock on the table that records it: an advisory lock any
role could take. Called by `connect` and by the tests.
"""

from __future__ import annotations

import contextlib
from importlib import resources
from typing import TYPE_CHECKING, Final

import asyncpg

from workron.core import errors
from workron.store import migration
from workron.store.postgres import doors, faults, functions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from asyncpg import Connection

    from workron.store.postgres.database import Database

_OLDEST: Final = 15
_LEDGER: Final = """
    CREATE TABLE IF NOT EXISTS workron.migration (
        number     integer PRIMARY KEY,
        name       text NOT NULL,
        checksum   text NOT NULL,
        compatible boolean NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )"""
# `IF NOT EXISTS` looks first and makes then; which of these says that another was faster depends on
# how far it had come.
_MADE_ALREADY: Final = (
    asyncpg.UniqueViolationError,
    asyncpg.DuplicateSchemaError,
    asyncpg.DuplicateTableError,
    asyncpg.DuplicateObjectError,
)
_APPLIED: Final = "SELECT number, name, checksum, compatible FROM workron.migration ORDER BY number"
_RECORD: Final = (
    "INSERT INTO workron.migration (number, name, checksum, compatible) VALUES ($1, $2, $3, $4)"
)
_CONNECT_SECONDS: Final = 10.0
_LOCK_SECONDS: Final = 60.0
_STATEMENT_SECONDS: Final = 600.0
"""For one statement of a migration, which may rewrite a large table."""


def known() -> Sequence[migration.Migration]:
    """Give the migrations that this program brings."""
    return migration.read(resources.files(__package__) / "migrations")


async def migrate(url: str) -> list[str]:
    """Apply what is missing and answer the names; safe to run from many places at once."""
    try:
        connection = await asyncpg.connect(
            url, timeout=_CONNECT_SECONDS, command_timeout=_STATEMENT_SECONDS
        )
    except (*faults.DRIVER, ValueError) as cause:
        raise faults.translate(cause, url, tried="to connect") from cause
    try:
        return await _migrate(connection)
    except asyncpg.LockNotAvailableError as cause:
        raise errors.StoreBusyError(
            f"{faults.shown(url)}: nothing was changed: somebody else has held a lock on the schema"
            f" for {_LOCK_SECONDS:g} s; end what holds it (`pg_stat_activity` tells), and try again"
        ) from cause
    except faults.DRIVER as cause:
        raise faults.translate(cause, url, tried="to migrate") from cause
    finally:
        connection.terminate()


async def _migrate(connection: Connection) -> list[str]:
    _refuse_an_old_server(connection)
    await _prepare(connection)
    async with _transaction(connection):
        await connection.execute("LOCK TABLE workron.migration IN ACCESS EXCLUSIVE MODE")
        missing = migration.pending(known(), await _applied(connection))
        await connection.execute("SET LOCAL search_path = workron, pg_catalog")
        for step in missing:
            await connection.execute(step.text)
            await connection.execute(
                _RECORD, step.number, step.name, step.checksum, step.is_compatible
            )
        applied = [step.name for step in missing]
        if not await functions.are_current(connection):
            await functions.install(connection)
            applied.append(f"functions {functions.known().number}")
        applied += await doors.close(connection)
    return applied


async def _prepare(connection: Connection) -> None:
    """Make room for the record; of two that do it at once, one fails and finds it made."""
    for _ in range(2):
        try:
            async with _transaction(connection):
                await connection.execute("CREATE SCHEMA IF NOT EXISTS workron")
                await connection.execute(_LEDGER)
        except _MADE_ALREADY:
            continue
        return


@contextlib.asynccontextmanager
async def _transaction(connection: Connection) -> AsyncIterator[None]:
    # Set for the transaction alone: behind a pooler, others use the same session.
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS:g}s'")
        yield


async def _applied(connection: Connection) -> list[migration.Applied]:
    return [migration.Applied(*row) for row in await connection.fetch(_APPLIED)]


def _refuse_an_old_server(connection: Connection) -> None:
    version = connection.get_server_version()
    if version.major < _OLDEST:
        raise errors.SchemaError(
            f"this is PostgreSQL {version.major}; Workron needs {_OLDEST} or newer"
        )


async def check(database: Database) -> None:
    """Raise SchemaError unless the database has a schema that this program can work with."""
    where = faults.shown(database.url)
    if not await database.fetch_value("SELECT to_regclass('workron.migration') IS NOT NULL"):
        raise errors.SchemaMissingError(
            f"{where} has no Workron schema; make it with {faults.migrating(database.url)}"
        )
    rows = await database.fetch(_APPLIED)
    missing = migration.pending(known(), [migration.Applied(*row) for row in rows])
    if missing:
        names = ", ".join(step.name for step in missing)
        raise errors.SchemaError(
            f"{where} lacks {names}; bring it up to date with {faults.migrating(database.url)}"
        )
    if not await functions.are_current(database):
        raise errors.SchemaError(
            f"the functions in {where} are older than this program; bring them up to date with"
            f" {faults.migrating(database.url)}"
        )

"""Bringing a PostgreSQL database to this program's schema, or telling that it is not there.

Forward only, in one transaction, under a lock on the table that records it: an advisory lock any
role could take. Called by `connect` and by the tests.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final

import asyncpg

from workron.core import errors
from workron.store import migration
from workron.store.postgres import faults, statements

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_INSTALLED: Final = "SELECT value FROM workron.meta WHERE key = 'functions'"
_INSTALL: Final = (
    "INSERT INTO workron.meta (key, value) VALUES ('functions', $1) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


def known() -> Sequence[migration.Migration]:
    """Give the migrations that this program brings."""
    return migration.read(resources.files(__package__) / "migrations")


async def migrate(url: str) -> list[str]:
    """Apply what is missing and answer the names; safe to run from many places at once."""
    try:
        connection = await asyncpg.connect(url, timeout=10)
    except (*faults.DRIVER, ValueError) as cause:
        raise faults.translate(cause, url, tried="to connect") from cause
    try:
        return await _migrate(connection)
    except faults.DRIVER as cause:
        raise faults.translate(cause, url) from cause
    finally:
        await connection.close()


async def _migrate(connection: Connection) -> list[str]:
    _refuse_an_old_server(connection)
    await _prepare(connection)
    async with connection.transaction():
        await connection.execute("LOCK TABLE workron.migration IN ACCESS EXCLUSIVE MODE")
        applied = await _applied(connection)
        missing = migration.pending(known(), applied)
        await connection.execute("SET LOCAL search_path = workron, pg_catalog")
        for step in missing:
            await connection.execute(step.text)
            await connection.execute(
                _RECORD, step.number, step.name, step.checksum, step.is_compatible
            )
        # A newer program's functions fit its schema; ours may not.
        if len(applied) <= len(known()):
            await _install_functions(connection)
    return [step.name for step in missing]


async def _prepare(connection: Connection) -> None:
    """Make room for the record; of two that do it at once, one fails and finds it made."""
    for _ in range(2):
        try:
            await connection.execute("CREATE SCHEMA IF NOT EXISTS workron")
            await connection.execute(_LEDGER)
        except _MADE_ALREADY:
            continue
        return


async def _applied(connection: Connection) -> list[migration.Applied]:
    return [migration.Applied(*row) for row in await connection.fetch(_APPLIED)]


async def _install_functions(connection: Connection) -> None:
    digest = statements.functions_digest()
    if await connection.fetchval(_INSTALLED) == digest:
        return
    await connection.execute("SET LOCAL check_function_bodies = off")
    for text in statements.functions().values():
        await connection.execute(text)
    await connection.execute("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA workron FROM PUBLIC")
    await connection.execute(_INSTALL, digest)


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
            f"{where} has no Workron schema; make it with `workron migrate --store {where}`"
        )
    rows = await database.fetch(_APPLIED)
    missing = migration.pending(known(), [migration.Applied(*row) for row in rows])
    if missing:
        names = ", ".join(step.name for step in missing)
        raise errors.SchemaError(
            f"{where} lacks {names}; bring it up to date with `workron migrate --store {where}`"
        )

"""Migrating a PostgreSQL database to this program's schema, and checking it.

Migrations go forward only, in one transaction, under a lock on the table that records them. An
advisory lock would not do: any role could take it.
"""

from __future__ import annotations

import contextlib
from importlib import resources
from typing import TYPE_CHECKING, Final

import asyncpg

from workron.core import errors
from workron.store import migrations
from workron.store.postgres import driver_errors, functions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from asyncpg import Connection

    from workron.store.postgres.pool import ConnectionPool


_ARE_PUBLIC: Final = """
    SELECT EXISTS (
        SELECT 1 FROM pg_proc p
        CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.pronamespace = 'workron'::regnamespace AND a.grantee = 0)"""
_WORKERS: Final = """
    SELECT DISTINCT r.rolname::text AS name FROM pg_proc p CROSS JOIN aclexplode(p.proacl) a
    JOIN pg_roles r ON r.oid = a.grantee
    WHERE p.pronamespace = 'workron'::regnamespace AND p.proname = 'register'
    AND a.grantee <> p.proowner AND EXISTS (SELECT 1 FROM workron.list_excess_rights(r.rolname))
    ORDER BY 1"""
# A server that a dump was restored on may count its transactions from a lower number.
_RENEW_INSERTED_BY: Final = """
    UPDATE workron.ready SET inserted_by = DEFAULT WHERE inserted_by > pg_current_xact_id();
    UPDATE workron.run SET inserted_by = NULL WHERE inserted_by > pg_current_xact_id()"""
_REVOKE: Final = "SELECT * FROM workron.revoke_excess_rights($1) AS statement"


async def revoke_public_rights(connection: Connection) -> list[str]:
    """Revoke rights that workers do not need, and report what was done or is left to do."""
    report = []
    if await connection.fetchval(_ARE_PUBLIC):
        await connection.execute("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA workron FROM PUBLIC")
        report.append("rights: only workers may call its functions")
    for row in await connection.fetch(_WORKERS):
        left = [one["statement"] for one in await connection.fetch(_REVOKE, row["name"])]
        report.append(f"rights: role {row['name']} can {_remaining_rights(left)}")
    return report


def _remaining_rights(left: list[str]) -> str:
    if not left:
        return "run jobs, and nothing else"
    return f"do more than run jobs; as a superuser, run `{'; '.join(left)}`"


_OLDEST: Final = 15
_MIGRATION_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS workron.migration (
        number     integer PRIMARY KEY,
        name       text NOT NULL,
        checksum   text NOT NULL,
        compatible boolean NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )"""
# `IF NOT EXISTS` is not atomic: any of these errors means that another process was faster.
_CREATED_CONCURRENTLY: Final = (
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


def known_migrations() -> Sequence[migrations.Migration]:
    """Return the migrations of this program."""
    return migrations.read_migrations(resources.files(__package__) / "migrations")


async def migrate(
    url: str,
    *,
    lock_seconds: float = _LOCK_SECONDS,
    statement_seconds: float = _STATEMENT_SECONDS,
) -> list[str]:
    """Apply pending migrations and return their names; concurrent calls are safe."""
    try:
        connection = await asyncpg.connect(
            url, timeout=_CONNECT_SECONDS, command_timeout=statement_seconds
        )
    except (*driver_errors.DRIVER, ValueError) as cause:
        raise driver_errors.translate(cause, url, action=driver_errors.CONNECT) from cause
    try:
        return await _migrate(connection, lock_seconds)
    except asyncpg.LockNotAvailableError as cause:
        raise errors.StoreBusyError(
            f"{driver_errors.redact_url(url)}:"
            f" nothing was changed: another session has held a lock on the schema"
            f" for {lock_seconds:g} s; end it (see `pg_stat_activity`), and try again"
        ) from cause
    except driver_errors.DRIVER as cause:
        raise driver_errors.translate(cause, url, action=driver_errors.MIGRATE) from cause
    finally:
        connection.terminate()


async def _migrate(connection: Connection, lock_seconds: float = _LOCK_SECONDS) -> list[str]:
    _check_server_version(connection)
    await _prepare(connection, lock_seconds)
    async with _transaction(connection, lock_seconds):
        await connection.execute("LOCK TABLE workron.migration IN ACCESS EXCLUSIVE MODE")
        missing = migrations.pending_migrations(known_migrations(), await _applied(connection))
        await connection.execute("SET LOCAL search_path = workron, pg_catalog")
        for step in missing:
            await connection.execute(step.text)
            await connection.execute(
                _RECORD, step.number, step.name, step.checksum, step.is_compatible
            )
        applied = [step.name for step in missing]
        if not await functions.are_current(connection):
            await functions.install_functions(connection)
            applied.append(f"functions {functions.known_version().number}")
        applied += await revoke_public_rights(connection)
        await connection.execute(_RENEW_INSERTED_BY)
    return applied


async def _prepare(connection: Connection, lock_seconds: float) -> None:
    """Create the schema and its table of migrations, maybe at the same time as another process."""
    for _ in range(2):
        try:
            async with _transaction(connection, lock_seconds):
                await connection.execute("CREATE SCHEMA IF NOT EXISTS workron")
                await connection.execute(_MIGRATION_TABLE)
        except _CREATED_CONCURRENTLY:
            continue
        return


@contextlib.asynccontextmanager
async def _transaction(connection: Connection, lock_seconds: float) -> AsyncIterator[None]:
    # Only for this transaction: behind a pooler, other clients use the same session.
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{lock_seconds:g}s'")
        yield


async def _applied(connection: Connection) -> list[migrations.Applied]:
    return [migrations.Applied(*row) for row in await connection.fetch(_APPLIED)]


def _check_server_version(connection: Connection) -> None:
    version = connection.get_server_version()
    if version.major < _OLDEST:
        raise errors.SchemaError(
            f"this is PostgreSQL {version.major}; Workron needs {_OLDEST} or newer"
        )


async def check(database: ConnectionPool) -> None:
    """Raise SchemaError unless the database has a schema that this program supports."""
    where = driver_errors.redact_url(database.url)
    if not await database.fetch_value("SELECT to_regclass('workron.migration') IS NOT NULL"):
        raise errors.SchemaMissingError(
            f"{where} has no Workron schema; create it with "
            f"{driver_errors.migrate_hint(database.url)}"
        )
    rows = await database.fetch(_APPLIED)
    missing = migrations.pending_migrations(
        known_migrations(), [migrations.Applied(*row) for row in rows]
    )
    if missing:
        names = ", ".join(step.name for step in missing)
        raise errors.SchemaError(
            f"{where} lacks {names}; bring it up to date with "
            f"{driver_errors.migrate_hint(database.url)}"
        )
    if not await functions.are_current(database):
        raise errors.SchemaError(
            f"the functions in {where} are older than this program; bring them up to date with"
            f" {driver_errors.migrate_hint(database.url)}"
        )

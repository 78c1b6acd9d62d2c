"""Migrating a SQLite database to this program's schema when a store is opened.

Migrations go forward only, in one exclusive transaction.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from workron.core import errors
from workron.store import migrations
from workron.store.sqlite.connection import execute_when_free, split_statements, statement_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from uuid import UUID


def known_migrations() -> Sequence[migrations.Migration]:
    """Return the migrations of this program."""
    return migrations.read_migrations(resources.files(__package__) / "migrations")


def migrate(connection: sqlite3.Connection, *, place: str, now: int, identity: UUID) -> None:
    """Apply pending migrations. SchemaError if this program does not support the schema."""
    execute_when_free(connection, "BEGIN IMMEDIATE")
    try:
        _apply(connection, now)
        connection.execute(statement_text("migrate.insert_identity"), {"identity": str(identity)})
    except BaseException as error:
        connection.rollback()
        if isinstance(error, errors.SchemaError):
            raise errors.SchemaError(f"{place}: {error}") from error
        raise
    connection.execute("COMMIT")


def _apply(connection: sqlite3.Connection, now: int) -> None:
    connection.execute(statement_text("migrate.create_migration_table"))
    rows = connection.execute(statement_text("migrate.applied_migrations")).fetchall()
    applied = [migrations.Applied(n, name, checksum, bool(c)) for n, name, checksum, c in rows]
    for step in migrations.pending_migrations(known_migrations(), applied):
        for statement in split_statements(step.text):
            connection.execute(statement)
        connection.execute(
            statement_text("migrate.insert_migration"),
            {
                "number": step.number,
                "name": step.name,
                "checksum": step.checksum,
                "compatible": step.is_compatible,
                "now": now,
            },
        )

"""A database is migrated once, by the process that opens it first."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.store.sqlite import golden, opening
from workron.core import errors
from workron.store.migrations import Migration
from workron.store.sqlite import connection, schema

_GOLDEN = Path(golden.__file__).with_name("schema.sql")


def _change(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as opened, opened:
        opened.execute(statement)


def _read(path: Path, statement: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as opened:
        return opened.execute(statement).fetchall()


async def _open_and_close(path: Path) -> None:
    await (await opening.open_store(path)).close()


def test_schema_is_the_reviewed_one(bare: sqlite3.Connection) -> None:
    hint = "look at the difference, then run `python -m tests.store.sqlite.golden`"
    assert golden.dump(bare) == _GOLDEN.read_text(), hint


async def test_second_open_changes_nothing(path: Path) -> None:
    await _open_and_close(path)
    before = _read(path, "SELECT * FROM migration"), _read(path, "SELECT * FROM meta")
    await _open_and_close(path)
    assert (_read(path, "SELECT * FROM migration"), _read(path, "SELECT * FROM meta")) == before


async def test_new_file_can_be_opened_concurrently(path: Path) -> None:
    stores = await asyncio.gather(*(opening.open_store(path) for _ in range(8)))
    for store in stores:
        await store.close()
    assert len(_read(path, "SELECT * FROM migration")) == len(schema.known_migrations())
    assert len(_read(path, "SELECT * FROM meta WHERE key = 'database'")) == 1


async def test_pending_migrations_are_computed_under_the_write_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _open_and_close(path)
    known, refused = schema.known_migrations(), []

    def execute() -> Sequence[Migration]:
        try:
            _change(path, "DELETE FROM migration")
        except sqlite3.OperationalError as error:
            refused.append(str(error))
        return known

    monkeypatch.setattr(schema, "known_migrations", execute)
    await _open_and_close(path)
    assert refused == ["database is locked"]


async def test_changed_migration_is_rejected_by_name(path: Path) -> None:
    await _open_and_close(path)
    _change(path, "UPDATE migration SET checksum = 'other' WHERE number = 1")
    with pytest.raises(errors.SchemaError, match=f"{path.name}: 0001_create_tables.sql"):
        await opening.open_store(path)


async def test_schema_one_newer_is_opened_when_compatible(path: Path) -> None:
    await _open_and_close(path)
    _change(path, "INSERT INTO migration SELECT max(number) + 1, 'n', 'c', 1, 0 FROM migration")
    await _open_and_close(path)


async def test_schema_two_newer_is_rejected(path: Path) -> None:
    await _open_and_close(path)
    for _ in range(2):
        _change(path, "INSERT INTO migration SELECT max(number) + 1, 'n', 'c', 1, 0 FROM migration")
    with pytest.raises(errors.SchemaError, match=r"store\.db: the schema has version"):
        await opening.open_store(path)


def test_failed_migration_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "CREATE TABLE half (a);\nCREATE TABLE half (a);\n"
    bad = Migration(1, "0001_a.sql", text, "c", is_compatible=True)
    monkeypatch.setattr(schema, "known_migrations", lambda: [bad])
    with contextlib.closing(connection.open_memory()) as opened:
        with pytest.raises(sqlite3.OperationalError, match="half"):
            schema.migrate(opened, place="here", now=0, identity=opening.IDENTITY)
        assert opened.execute("SELECT * FROM sqlite_master").fetchall() == []

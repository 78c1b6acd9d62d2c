"""Errors of a file: which file, what is wrong, and what to do."""

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.sqlite import opening
from workron.core import errors
from workron.retry import RetryBackoff
from workron.store.sqlite import connection
from workron.store.sqlite.engine import Transaction
from workron.store.sqlite.store import SqliteStore

_UNPRIVILEGED_UID = 65534


@pytest.fixture
def no_busy_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.0)
    monkeypatch.setattr(connection, "_BUSY_BACKOFF", RetryBackoff(0, 0, max_calls=1))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may write to; they cannot reach the folders of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@contextlib.contextmanager
def _unprivileged() -> Iterator[None]:
    """Act as a user without rights to the files."""
    uid = os.geteuid()
    if uid == 0:
        os.seteuid(_UNPRIVILEGED_UID)
    try:
        yield
    finally:
        os.seteuid(uid)


def _content(path: Path) -> bytes:
    return path.read_bytes()


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _lock(path: Path, mode: int) -> None:
    path.chmod(mode)


async def test_file_is_rejected_and_unchanged_when_it_is_not_a_database(path: Path) -> None:
    _write(path, b"to be or not to be " * 100)
    with pytest.raises(errors.StoreUnreachableError, match=f"{path}: .*not a SQLite database"):
        await opening.open_store(path)
    assert _content(path).startswith(b"to be")


async def test_directory_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(errors.StoreUnreachableError, match=f"{tmp_path}: .*is a directory"):
        await opening.open_store(tmp_path)


async def test_error_names_a_missing_directory(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "such"
    with pytest.raises(errors.StoreUnreachableError, match=f"{missing} does not exist"):
        await opening.open_store(missing / "store.db")


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE theirs (a)", "PRAGMA application_id = 252006674"]
)
async def test_file_is_rejected_and_unchanged_when_it_belongs_to_another_program(
    path: Path, statement: str
) -> None:
    with contextlib.closing(sqlite3.connect(path)) as theirs:
        theirs.execute(statement)
    before = _content(path)
    with pytest.raises(errors.SchemaError, match=f"{path}: .*another application"):
        await opening.open_store(path)
    assert _content(path) == before


async def test_new_file_has_the_application_id(store: SqliteStore, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as opened:
        (found,) = opened.execute("PRAGMA application_id").fetchone()
    assert found == connection.APPLICATION_ID
    assert store.url == f"sqlite:///{path}"


async def test_damaged_file_is_rejected(path: Path) -> None:
    await (await opening.open_store(path)).close()
    _write(path, _content(path)[:100] + b"\xff" * 100_000)
    with pytest.raises(errors.StoreUnreachableError, match=str(path)):
        await opening.open_store(path)


async def test_read_only_file_is_rejected(open_folder: Path) -> None:
    path = open_folder / "store.db"
    await (await opening.open_store(path)).close()
    _lock(path, 0o444)
    with _unprivileged(), pytest.raises(errors.StoreFullError, match=f"{path}: .*read-only"):
        await opening.open_store(path)


async def test_read_only_folder_is_rejected(open_folder: Path) -> None:
    path = open_folder / "store.db"
    _lock(open_folder, 0o555)
    with _unprivileged(), pytest.raises(errors.StoreUnreachableError, match=f"{path}: .*directory"):
        await opening.open_store(path)


async def test_file_in_a_read_only_folder_is_rejected(open_folder: Path) -> None:
    path = open_folder / "store.db"
    await (await opening.open_store(path)).close()
    _lock(path, 0o666)
    _lock(open_folder, 0o555)
    with _unprivileged(), pytest.raises(errors.StoreFullError, match=f"{path}: .*its directory"):
        await opening.open_store(path)


@pytest.mark.usefixtures("no_busy_wait")
async def test_open_raises_busy_while_another_process_writes(path: Path) -> None:
    await (await opening.open_store(path)).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.StoreBusyError, match=f"{path}: .*another process"):
            await opening.open_store(path)


@pytest.mark.usefixtures("no_busy_wait")
async def test_method_raises_busy_while_another_process_writes_and_succeeds_later(
    path: Path,
) -> None:
    store = await opening.open_store(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.StoreBusyError, match=f"{path}: .*another process"):
            await store.submit([plans.job()])
        assert await store.list_runs() == [], "a reader does not wait"
        other.execute("ROLLBACK")
    (submitted,) = await store.submit([plans.job()])
    assert submitted.is_new
    await store.close()


def _limit_pages(tx: Transaction, spare: int) -> None:
    (pages,) = tx._connection.execute("PRAGMA page_count").fetchone()
    tx._connection.execute(f"PRAGMA max_page_count = {pages + spare}")


async def test_full_disk_is_reported_and_nothing_is_half_done(
    store: SqliteStore, path: Path
) -> None:
    (small,) = await store.submit([plans.job("small")])
    await store._write(lambda tx: _limit_pages(tx, 5))
    with pytest.raises(errors.StoreFullError, match=f"{path}: .*no space"):
        await store.submit([plans.job("fine"), plans.dag(a=task(count=2000))])
    assert [row.run for row in await store.list_runs()] == [small.run]
    await store._write(lambda tx: _limit_pages(tx, 10_000))
    (large,) = await store.submit([plans.dag(a=task(count=2000))])
    assert large.is_new

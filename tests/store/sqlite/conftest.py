"""A store in a new file, and a connection to the same tables in memory."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.store.sqlite import opening
from workron.store.sqlite.store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = await opening.open_store(path)
    yield opened
    await opened.close()


@pytest.fixture
def bare() -> Iterator[sqlite3.Connection]:
    with contextlib.closing(opening.open_bare()) as opened:
        yield opened

"""A store in a new file, and a connection to the same tables in memory."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests import leaks
from tests.store.sqlite import opening
from workron.store.sqlite.store import SqliteStore


@pytest.fixture(autouse=True)
def _leaves_nothing() -> Iterator[None]:
    with leaks.checked():
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    async with leaks.checked_tasks():
        opened = await opening.open_store(path)
        yield opened
        await opened.close()


@pytest.fixture
def bare() -> Iterator[sqlite3.Connection]:
    with contextlib.closing(opening.open_bare()) as opened:
        yield opened

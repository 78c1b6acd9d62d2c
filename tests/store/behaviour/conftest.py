"""The fixture `harness`: each test that uses it runs on every store."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.store.behaviour import databases
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import Worker


@pytest.fixture(scope="session")
def shared_database(postgres_dsn: str, migrated_template: str) -> Iterator[str]:
    """One database for all tests, emptied before each: a fresh one takes a second."""
    with databases.copied_database(postgres_dsn, migrated_template) as dsn:
        yield dsn


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> databases.DatabaseUnderTest:
    if request.param == "memory":
        return databases.SqliteUnderTest(None)
    if request.param == "sqlite":
        return databases.SqliteUnderTest(tmp_path / "store.db")
    return databases.PostgresUnderTest(request.getfixturevalue("shared_database"))


@pytest.fixture
def _kept(database: databases.DatabaseUnderTest) -> databases.DatabaseUnderTest:
    """Return the database, whose server may have been started for all tests."""
    return database


@pytest.fixture
async def harness(database: databases.DatabaseUnderTest) -> AsyncIterator[Harness]:
    await database.clear()
    made = Harness(database, await database.open())
    yield made
    await made.check()
    await made.close()
    await database.close()


@pytest.fixture
async def worker(harness: Harness) -> Worker:
    return await harness.worker()

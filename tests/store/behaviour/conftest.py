"""The fixture `harness`: each test that asks for it runs on every store."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.store.behaviour import grounds
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import Worker


@pytest.fixture(scope="session")
def shared_database(postgres_dsn: str, migrated_template: str) -> Iterator[str]:
    """One database for all tests, emptied before each: a fresh one takes a second."""
    with grounds.copied_database(postgres_dsn, migrated_template) as dsn:
        yield dsn


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> grounds.Ground:
    if request.param == "memory":
        return grounds.SqliteGround(None)
    if request.param == "sqlite":
        return grounds.SqliteGround(tmp_path / "store.db")
    return grounds.PostgresGround(request.getfixturevalue("shared_database"))


@pytest.fixture
async def harness(ground: grounds.Ground) -> AsyncIterator[Harness]:
    await ground.clear()
    made = Harness(ground, await ground.open())
    yield made
    await made.check()
    await made.close()
    await ground.close()


@pytest.fixture
async def worker(harness: Harness) -> Worker:
    return await harness.worker()

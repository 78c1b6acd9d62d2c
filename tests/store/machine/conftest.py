"""The fixture `make_ground`: the random walk starts anew many times, on every store."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.behaviour import grounds


@pytest.fixture(scope="session")
def walked_database(postgres_dsn: str, migrated_template: str) -> Iterator[str]:
    """One database for all walks, emptied before each."""
    with grounds.copied_database(postgres_dsn, migrated_template) as dsn:
        yield dsn


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_ground(
    dialect: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[], grounds.Ground]:
    if dialect == "memory":
        return lambda: grounds.SqliteGround(None)
    if dialect == "sqlite":
        numbers = itertools.count()
        return lambda: grounds.SqliteGround(tmp_path / f"{next(numbers)}.db")
    dsn = request.getfixturevalue("walked_database")
    return lambda: grounds.PostgresGround(dsn)

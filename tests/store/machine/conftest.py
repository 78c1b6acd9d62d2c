"""The fixture `make_database`: the random walk starts many times on every store."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.behaviour import databases


@pytest.fixture(scope="session")
def shared_database(postgres_dsn: str, migrated_template: str) -> Iterator[str]:
    """One database for all walks, emptied before each."""
    with databases.copied_database(postgres_dsn, migrated_template) as dsn:
        yield dsn


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_database(
    dialect: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[], databases.DatabaseUnderTest]:
    if dialect == "memory":
        return lambda: databases.SqliteUnderTest(None)
    if dialect == "sqlite":
        numbers = itertools.count()
        return lambda: databases.SqliteUnderTest(tmp_path / f"{next(numbers)}.db")
    dsn = request.getfixturevalue("shared_database")
    return lambda: databases.PostgresUnderTest(dsn)


@pytest.fixture
def _kept(make_database: Callable[[], databases.DatabaseUnderTest]) -> object:
    """Return the database, whose server may have been started for all tests."""
    return make_database

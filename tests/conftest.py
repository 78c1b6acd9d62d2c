"""Fixtures for all tests: the check that a test leaves nothing behind, and PostgreSQL databases."""

import asyncio
import contextlib
import importlib
import inspect
import os
import secrets
from collections.abc import AsyncIterator, Coroutine, Iterator
from urllib import parse

import asyncpg
import hypothesis
import pytest

from tests import leaks, postgres_server

_OLDEST_POSTGRES = 15

# A deadline per example is a timed assertion; the timeout per test bounds a hang.
hypothesis.settings.register_profile("workron", deadline=None, print_blob=True)
hypothesis.settings.load_profile("workron")


@pytest.fixture
def _kept() -> None:
    """Return a resource that the tests of a folder keep open; a folder overrides it."""


@pytest.fixture(autouse=True)
def _leaves_nothing(_kept: object) -> Iterator[None]:
    with leaks.checked():
        yield


@pytest.fixture(autouse=True)
def _leaves_no_task(request: pytest.FixtureRequest, _leaves_nothing: None) -> None:
    if inspect.iscoroutinefunction(request.function):
        request.getfixturevalue("checked_tasks")


@pytest.fixture
async def checked_tasks() -> AsyncIterator[None]:
    async with leaks.checked_tasks():
        yield


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The DSN of an administrator, on the server of WORKRON_TEST_DSN or on an embedded one."""
    with contextlib.ExitStack() as stack:
        given = os.environ.get("WORKRON_TEST_DSN")
        dsn = given or stack.enter_context(postgres_server.running())
        _run(_check_version(dsn))
        yield dsn


@pytest.fixture(scope="session")
def migrated_template(postgres_dsn: str) -> Iterator[str]:
    """The name of a migrated database, of which the others are copies."""
    migrate = importlib.import_module("workron.store.postgres.schema")
    with _database(postgres_dsn, kind="template", template="template0") as dsn:
        _run(migrate.migrate(dsn))
        yield parse.urlsplit(dsn).path.removeprefix("/")


@pytest.fixture
def fresh_database(postgres_dsn: str, migrated_template: str) -> Iterator[str]:
    """The DSN of a migrated database for one test only."""
    with _database(postgres_dsn, kind="test", template=migrated_template) as dsn:
        yield dsn


@pytest.fixture
def empty_database(postgres_dsn: str) -> Iterator[str]:
    """The DSN of a database without tables, for the tests of migrations."""
    with _database(postgres_dsn, kind="test", template="template0") as dsn:
        yield dsn


@contextlib.contextmanager
def _database(admin_dsn: str, *, kind: str, template: str) -> Iterator[str]:
    # The random name keeps test processes apart that share a server. Copying the files is several
    # times faster here than the default, which writes them to the log.
    name = f"workron_{kind}_{secrets.token_hex(6)}"
    _run(_execute(admin_dsn, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"))
    try:
        yield parse.urlsplit(admin_dsn)._replace(path=f"/{name}").geturl()
    finally:
        _run(_execute(admin_dsn, f"DROP DATABASE {name} WITH (FORCE)"))


def _run(coroutine: Coroutine[object, object, None]) -> None:
    # A new event loop, which leaves the one that pytest-asyncio has set for the test in place.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(coroutine)


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _check_version(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    major = connection.get_server_version().major
    await connection.close()
    if major < _OLDEST_POSTGRES:
        pytest.exit(
            f"WORKRON_TEST_DSN is PostgreSQL {major}; the tests need {_OLDEST_POSTGRES} or later"
        )

"""What every test may ask for: a PostgreSQL server, and a fresh database on it."""

import asyncio
import contextlib
import importlib
import os
import secrets
from collections.abc import Coroutine, Iterator
from urllib import parse

import asyncpg
import hypothesis
import pytest

from tests import postgres_server

_OLDEST_POSTGRES = 15

# A deadline per example is a timed assertion; the timeout per test bounds a hang.
hypothesis.settings.register_profile("workron", deadline=None, print_blob=True)
hypothesis.settings.load_profile("workron")


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The DSN of an administrator, on the server that WORKRON_TEST_DSN names or on our own."""
    with contextlib.ExitStack() as stack:
        given = os.environ.get("WORKRON_TEST_DSN")
        dsn = given or stack.enter_context(postgres_server.running())
        _run(_refuse_an_old_server(dsn))
        yield dsn


@pytest.fixture(scope="session")
def migrated_template(postgres_dsn: str) -> Iterator[str]:
    """The name of a database that was migrated once, to copy fresh ones from."""
    migrate = importlib.import_module("workron.store.postgres.schema")
    with _database(postgres_dsn, kind="template", template="template0") as dsn:
        _run(migrate.migrate(dsn))
        yield parse.urlsplit(dsn).path.removeprefix("/")


@pytest.fixture
def fresh_database(postgres_dsn: str, migrated_template: str) -> Iterator[str]:
    """The DSN of a migrated database that no other test has seen."""
    with _database(postgres_dsn, kind="test", template=migrated_template) as dsn:
        yield dsn


@pytest.fixture
def empty_database(postgres_dsn: str) -> Iterator[str]:
    """The DSN of a database with nothing in it, for the tests of migrations."""
    with _database(postgres_dsn, kind="test", template="template0") as dsn:
        yield dsn


@contextlib.contextmanager
def _database(admin_dsn: str, *, kind: str, template: str) -> Iterator[str]:
    # A random name, so that test processes that share a server never meet. Copying the files is
    # several times faster here than writing them to the log, the default.
    name = f"workron_{kind}_{secrets.token_hex(6)}"
    _run(_execute(admin_dsn, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"))
    try:
        yield parse.urlsplit(admin_dsn)._replace(path=f"/{name}").geturl()
    finally:
        _run(_execute(admin_dsn, f"DROP DATABASE {name} WITH (FORCE)"))


def _run(work: Coroutine[object, object, None]) -> None:
    # A loop of its own, so that the one that pytest-asyncio keeps for the test stays in place.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(work)


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _refuse_an_old_server(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    major = connection.get_server_version().major
    await connection.close()
    if major < _OLDEST_POSTGRES:
        pytest.exit(f"WORKRON_TEST_DSN names PostgreSQL {major}; {_OLDEST_POSTGRES} is the oldest")

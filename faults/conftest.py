"""Fixtures of the fault tests: a harness with a real PostgreSQL, and long timeouts."""

import asyncio
import pathlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from urllib import parse

import asyncpg
import pytest

from faults import processes
from faults.harness import FaultHarness
from faults.loop_thread import LoopThread, running
from tests import postgres_server
from tests.postgres_server import Server
from workron.store.postgres import schema

_SUMMARY = pytest.StashKey[list[str]]()
_TIMEOUT_SECONDS = 300


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the duration of the storm."""
    parser.addoption("--minutes", type=float, default=1, help="how long the storm of faults lasts")


def pytest_configure(config: pytest.Config) -> None:
    """Adopt orphaned processes, and prepare the summary lines."""
    processes.become_subreaper()
    config.stash[_SUMMARY] = []
    config.addinivalue_line("markers", "storm: lasts as long as --minutes says")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Allow every test time for real processes, and the storm its duration in addition."""
    for item in items:
        extra = config.getoption("minutes") * 60 if item.get_closest_marker("storm") else 0
        item.add_marker(pytest.mark.timeout(extra + _TIMEOUT_SECONDS))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the summary lines of the tests, whether they passed or not."""
    for line in terminalreporter.config.stash[_SUMMARY]:
        terminalreporter.write_line(line)


@pytest.fixture
def summary(request: pytest.FixtureRequest) -> list[str]:
    """Lines that are printed after all tests."""
    return request.config.stash[_SUMMARY]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL that a test may crash if it starts it again."""
    with postgres_server.serving() as one:
        yield one


@pytest.fixture(scope="session")
def template(server: Server) -> str:
    """The name of a migrated database that others are copied from."""
    _run(server.dsn, "CREATE DATABASE template TEMPLATE template0")
    with asyncio.Runner() as runner:
        runner.run(schema.migrate(_dsn(server, "template")))
    return "template"


@pytest.fixture
def database(server: Server, template: str) -> Iterator[str]:
    """The DSN of a migrated database for this test only."""
    name = f"faults_{secrets.token_hex(6)}"
    _run(server.dsn, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield _dsn(server, name)
    _run(server.dsn, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def loop() -> Iterator[LoopThread]:
    """An event loop on a thread of its own."""
    with running() as one:
        yield one


@pytest.fixture
def folder() -> Iterator[pathlib.Path]:
    """A folder that commands of any user may enter."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def harness(
    folder: pathlib.Path, server: Server, database: str, loop: LoopThread
) -> Iterator[FaultHarness]:
    """The harness of this test, which must leave nothing behind."""
    one = FaultHarness(folder, server, database, loop)
    yield one
    one.close()


def _dsn(server: Server, database: str) -> str:
    return parse.urlsplit(server.dsn)._replace(path=f"/{database}").geturl()


def _run(dsn: str, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    with asyncio.Runner() as runner:
        runner.run(run())

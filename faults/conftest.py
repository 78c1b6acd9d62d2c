"""What a test of faults may ask for: a harness of its own on a real PostgreSQL, and time."""

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

_TOLD = pytest.StashKey[list[str]]()
_ROOM_SECONDS = 300


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say how long the storm is."""
    parser.addoption("--minutes", type=float, default=1, help="how long the storm of faults lasts")


def pytest_configure(config: pytest.Config) -> None:
    """Take in what loses its parent, and keep what tests have to tell."""
    processes.take_in_orphans()
    config.stash[_TOLD] = []
    config.addinivalue_line("markers", "storm: lasts as long as --minutes says")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give every test time for real processes, and the storm as much as it was given."""
    for item in items:
        room = config.getoption("minutes") * 60 if item.get_closest_marker("storm") else 0
        item.add_marker(pytest.mark.timeout(room + _ROOM_SECONDS))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have to tell, whether they passed or not."""
    for line in terminalreporter.config.stash[_TOLD]:
        terminalreporter.write_line(line)


@pytest.fixture
def told(request: pytest.FixtureRequest) -> list[str]:
    """Lines that are printed when all tests are over."""
    return request.config.stash[_TOLD]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL that a test may have crash, if it has it begin again."""
    with postgres_server.serving() as one:
        yield one


@pytest.fixture(scope="session")
def template(server: Server) -> str:
    """The name of a database that was migrated once, to copy others from."""
    _run(server.dsn, "CREATE DATABASE template TEMPLATE template0")
    with asyncio.Runner() as runner:
        runner.run(schema.migrate(_dsn(server, "template")))
    return "template"


@pytest.fixture
def database(server: Server, template: str) -> Iterator[str]:
    """The DSN of a migrated database that no other test has seen."""
    name = f"faults_{secrets.token_hex(6)}"
    _run(server.dsn, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield _dsn(server, name)
    _run(server.dsn, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def loop() -> Iterator[LoopThread]:
    """An event loop beside the tests."""
    with running() as one:
        yield one


@pytest.fixture
def folder() -> Iterator[pathlib.Path]:
    """A folder that a command may enter whoever it runs as."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def harness(
    folder: pathlib.Path, server: Server, database: str, loop: LoopThread
) -> Iterator[FaultHarness]:
    """A world of this test's own, in which nothing may be left."""
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

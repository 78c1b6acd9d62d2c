"""Fixtures: `workron` installed from a wheel of this tree, a PostgreSQL, and the worker image."""

import contextlib
import os
import pathlib
import subprocess
import sys
import venv
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

from e2e import containers
from e2e import store as store_access
from e2e.containers import Containers
from e2e.store import Call, Store, Submit
from tests import postgres_server

_ROOT = pathlib.Path(__file__).parents[1]
_UV = _ROOT / ".uv" / "bin" / "uv"

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def workron(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The `workron` command, installed from a wheel with the locked libraries."""
    return _installed(tmp_path_factory.mktemp("installed"))


def _installed(home: pathlib.Path) -> pathlib.Path:
    venv.create(home / "venv", symlinks=True)
    wheel = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home)]
    _run(*wheel)
    needs = home / "requirements.txt"
    locked = ["--frozen", "--no-dev", "--no-emit-project", "--quiet"]
    _run(_UV, "export", *locked, "-o", needs)
    (built,) = home.glob("*.whl")
    python = home / "venv" / "bin" / "python"
    _run(_UV, "pip", "install", "--quiet", "--python", python, "-r", needs, built)
    return home / "venv" / "bin" / "workron"


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """The URL of an empty PostgreSQL server."""
    with postgres_server.running() as dsn:
        yield dsn


@pytest.fixture
def call(workron: pathlib.Path, tmp_path: pathlib.Path) -> Call:
    """Run `workron` to its end in an empty folder."""

    def call(*arguments: object) -> "subprocess.CompletedProcess[str]":
        command = [str(workron), *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path, env=_environment(), text=True, capture_output=True, check=False
        )

    return call


@pytest.fixture
def start(workron: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Start]:
    """Start `workron` in the background; kill what still runs after the test."""
    with _starting(workron, tmp_path) as start:
        yield start


@contextlib.contextmanager
def _starting(program: pathlib.Path, folder: pathlib.Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object, **environment: str) -> "subprocess.Popen[str]":
        command = [str(program), *map(str, arguments)]
        started.append(
            subprocess.Popen(
                command,
                cwd=folder,
                env=_environment() | environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        )
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            result, _ = process.communicate()
            print(f"--- {process.args!r}\n{result}")


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    """The worker image, built from this tree."""
    containers.require_docker()
    yield from containers.build_worker_image()


@pytest.fixture
def image_containers(image: str) -> Iterator[Containers]:
    """Starts containers of the worker image; checks that none remains after the test."""
    one = Containers(image)
    yield one
    one.close()
    assert one.remaining() == []


@pytest.fixture
async def store(database: str, call: Call) -> Store:
    """A new database for this test."""
    return await store_access.create_store(database, call)


@pytest.fixture
def submit(call: Call, store: Store, tmp_path: pathlib.Path) -> Submit:
    """Submit a job that runs one command."""

    def submit(name: str, command: str) -> None:
        path = tmp_path / f"{name}.yaml"
        path.write_text(store_access.manifest(name, command))
        result = call("submit", path, "--store", store.url)
        assert result.returncode == 0, result.stderr

    return submit


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}


def _run(*command: object) -> None:
    subprocess.run(list(map(str, command)), cwd=_ROOT, check=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how long each file took."""
    took: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for one in reports:
            if isinstance(one, pytest.TestReport):
                took[one.nodeid.partition("::")[0]] += one.duration
    for file, seconds in sorted(took.items()):
        terminalreporter.write_line(f"{seconds:7.1f} s  {file}")

"""Databases behind a pooler, which sends each statement to any free connection.

One is a pool that uses each connection once. The other is PgBouncer in transaction mode, of version
1.21 or newer, from `make pgbouncer`, `WORKRON_TEST_PGBOUNCER` or the PATH.
"""

import contextlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from urllib import parse

import asyncpg
import pytest

from tests.store.behaviour.databases import PostgresUnderTest
from workron.store import api
from workron.store.postgres import store
from workron.store.postgres.pool import ConnectionPool
from workron.store.postgres.store import PostgresStore

_FETCHED = pathlib.Path(__file__).parents[3] / ".pgbouncer" / "pgbouncer"
_OLDEST = (1, 21)
CONNECTIONS = 3
"""How many of the server's connections PgBouncer shares out."""
_UNPRIVILEGED = "nobody"
_ENTRANT = "postgres", "entrance"
_BY_NAME = "SELECT usename, passwd FROM pg_shadow WHERE usename = $1"


class NewConnectionHarness(PostgresUnderTest):
    """Every call has a new connection, and no store receives a NOTIFY."""

    async def open(self) -> api.Store:
        rng = random.Random()
        return PostgresStore(await self._database(4, rng), await self._database(1, rng), rng)

    async def _database(self, connections: int, rng: random.Random) -> ConnectionPool:
        # With a minimum size, the pool would replace each used connection in the background,
        # even while it is being closed.
        pool = await asyncpg.create_pool(self.dsn, min_size=0, max_size=connections, max_queries=1)
        return ConnectionPool(pool, url=self.dsn, rng=rng)


class PgBouncerHarness(PostgresUnderTest):
    """Stores connect to PgBouncer; the test changes the clock on a direct connection."""

    def __init__(self, dsn: str, bouncer: pathlib.Path) -> None:
        super().__init__(dsn)
        self.pooled = through(bouncer, dsn)

    async def open(self) -> api.Store:
        return await store.open_postgres(self.pooled, rng=random.Random())


def through(bouncer: pathlib.Path, dsn: str) -> str:
    """Return the DSN of a database through PgBouncer."""
    return f"postgresql://anybody@{parse.urlsplit(dsn).path}?host={bouncer}"


def entered(bouncer: pathlib.Path, dsn: str) -> str:
    """Return the DSN of a database through a PgBouncer that requires passwords."""
    login = ":".join(_ENTRANT)
    return f"postgresql://{login}@{parse.urlsplit(dsn).path}?host={bouncer}"


def found() -> str:
    """Return the path of a PgBouncer that supports prepared statements, or skip the test."""
    named = os.environ.get("WORKRON_TEST_PGBOUNCER")
    path = named or shutil.which(_FETCHED) or shutil.which("pgbouncer")
    if path is None:
        pytest.skip("no pgbouncer: WORKRON_TEST_PGBOUNCER, `make pgbouncer` and PATH gave none")
    printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"PgBouncer (\d+)\.(\d+)", printed)
    if version is None or tuple(map(int, version.groups())) < _OLDEST:
        pytest.skip(f"{path} is {printed.splitlines()[0]}, too old for prepared statements")
    return path


def logging_in(dsn: str, home: pathlib.Path, *, asks: bool) -> str:
    """Start a PgBouncer that checks the passwords of roles: its own, or all of the server's."""
    name, word = _ENTRANT
    (home / "users.txt").write_text(f'"{name}" "{word}"\n')
    server = _server(dsn).replace(f"user={_quoted('postgres')}", "")
    query = f"auth_user = {name}\nauth_query = {_BY_NAME}" if asks else ""
    return f"""
[databases]
* = {server}
[pgbouncer]
listen_addr =
listen_port = 5432
unix_socket_dir = {home}
auth_type = scram-sha-256
auth_file = users.txt
pool_mode = transaction
max_prepared_statements = 100
default_pool_size = {CONNECTIONS}
{query}
"""


@contextlib.contextmanager
def running(dsn: str, *, prepared_statements: int = 100) -> Iterator[pathlib.Path]:
    """Start PgBouncer in front of a server, yield the folder of its socket, and stop it."""
    with set_up(lambda home: _settings(dsn, home, prepared_statements)) as home:
        yield home


@contextlib.contextmanager
def set_up(settings: Callable[[pathlib.Path], str]) -> Iterator[pathlib.Path]:
    """Start PgBouncer with these settings, yield the folder of its socket, and stop it."""
    command = [found(), "pgbouncer.ini"]
    # The path of a socket must be shorter than 108 bytes, and that of a default folder may not be.
    with tempfile.TemporaryDirectory(prefix="workron-pgbouncer-", dir="/tmp") as name:
        home = pathlib.Path(name)
        (home / "pgbouncer.ini").write_text(settings(home))
        if os.geteuid() == 0:
            # It refuses to run as root, and creates its socket as the user that it switches to.
            for path in (home, *home.iterdir()):
                shutil.chown(path, _UNPRIVILEGED)
            command += ["--user", _UNPRIVILEGED]
        with subprocess.Popen(command, cwd=home, stderr=subprocess.PIPE, text=True) as process:
            _await_open(process)
            with _reading(process):
                yield home


def _settings(dsn: str, home: pathlib.Path, prepared_statements: int) -> str:
    return f"""
[databases]
* = {_server(dsn)}
[pgbouncer]
listen_addr =
listen_port = 5432
unix_socket_dir = {home}
auth_type = any
pool_mode = transaction
max_prepared_statements = {prepared_statements}
default_pool_size = {CONNECTIONS}
"""


def _server(dsn: str) -> str:
    parts = parse.urlsplit(dsn)
    query = dict(parse.parse_qsl(parts.query))
    about = {
        "host": query.get("host", parts.hostname),
        "port": query.get("port", parts.port),
        "user": parse.unquote(parts.username or ""),
        "password": parse.unquote(parts.password or ""),
    }
    return " ".join(f"{key}={_quoted(value)}" for key, value in about.items() if value)


def _quoted(value: object) -> str:
    doubled = str(value).replace("'", "''")
    return f"'{doubled}'"


def _await_open(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        if "process up" in line:
            return
        said.append(line)
    raise RuntimeError(f"pgbouncer did not start:\n{''.join(said)}")


@contextlib.contextmanager
def _reading(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Read its log, for which it would otherwise block, until it ends."""
    reader = threading.Thread(target=process.communicate)
    reader.start()
    try:
        yield
    finally:
        process.terminate()
        reader.join()

"""Databases behind a pooler, where consecutive statements go to whichever connection is free.

Two of them: a pool that uses each connection once, which is always there, and PgBouncer in
transaction mode, which is there once `make pgbouncer` has fetched one, or where
`WORKRON_TEST_PGBOUNCER` or the PATH names one of version 1.21 or newer. Used by test_pooled.py and
test_pgbouncer.py.
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
from collections.abc import Iterator
from urllib import parse

import asyncpg
import pytest

from tests.store.behaviour.grounds import PostgresGround
from workron.store import postgres, protocol
from workron.store.postgres.database import Database
from workron.store.postgres.store import PostgresStore

_FETCHED = pathlib.Path(__file__).parents[3] / ".pgbouncer" / "pgbouncer"
_OLDEST = (1, 21)
CONNECTIONS = 3
"""How many of the server's connections PgBouncer shares out."""
_NOBODY = "nobody"


class OnceGround(PostgresGround):
    """Every call has a new connection, and nobody hears a NOTIFY."""

    async def open(self) -> protocol.Store:
        rng = random.Random()
        return PostgresStore(await self._database(4, rng), await self._database(1, rng), rng)

    async def _database(self, connections: int, rng: random.Random) -> Database:
        # With a smallest size, the pool would replace each used connection behind our back, and be
        # closed while it does.
        pool = await asyncpg.create_pool(self.dsn, min_size=0, max_size=connections, max_queries=1)
        return Database(pool, url=self.dsn, rng=rng)


class PgBouncerGround(PostgresGround):
    """Stores talk to PgBouncer; the test itself turns the clock behind its back."""

    def __init__(self, dsn: str, bouncer: pathlib.Path) -> None:
        super().__init__(dsn)
        self.pooled = through(bouncer, dsn)

    async def open(self) -> protocol.Store:
        return await postgres.open_postgres(self.pooled, rng=random.Random())


def through(bouncer: pathlib.Path, dsn: str) -> str:
    """Give the DSN of a database as it is reached through PgBouncer."""
    return f"postgresql://anybody@{parse.urlsplit(dsn).path}?host={bouncer}"


def found() -> str:
    """Give the path of a PgBouncer that knows prepared statements, or skip the test."""
    named = os.environ.get("WORKRON_TEST_PGBOUNCER")
    path = named or shutil.which(_FETCHED) or shutil.which("pgbouncer")
    if path is None:
        pytest.skip("no pgbouncer: WORKRON_TEST_PGBOUNCER, `make pgbouncer` and PATH gave none")
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"PgBouncer (\d+)\.(\d+)", told)
    if version is None or tuple(map(int, version.groups())) < _OLDEST:
        pytest.skip(f"{path} is {told.splitlines()[0]}, too old for prepared statements")
    return path


@contextlib.contextmanager
def running(dsn: str, *, prepared_statements: int = 100) -> Iterator[pathlib.Path]:
    """Start PgBouncer in front of a server, give the folder of its socket, and end it."""
    command = [found(), "pgbouncer.ini"]
    # A socket's path has to stay under 108 bytes, which the system's own choice may not.
    with tempfile.TemporaryDirectory(prefix="workron-pgbouncer-", dir="/tmp") as name:
        home = pathlib.Path(name)
        (home / "pgbouncer.ini").write_text(_settings(dsn, home, prepared_statements))
        if os.geteuid() == 0:
            # It refuses to run as root, and makes its socket as whom it becomes.
            shutil.chown(home, _NOBODY)
            command += ["--user", _NOBODY]
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
    """Read what it tells of each connection, for which it would wait, until it is ended here."""
    reader = threading.Thread(target=process.communicate)
    reader.start()
    try:
        yield
    finally:
        process.terminate()
        reader.join()

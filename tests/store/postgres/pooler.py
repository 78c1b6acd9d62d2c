"""Databases behind a pooler, where consecutive statements go to whichever connection is free.

Two of them: a pool that uses each connection once, which is always there, and PgBouncer in
transaction mode, where `WORKRON_TEST_PGBOUNCER` or the PATH names one of version 1.21 or newer.
Used by test_pooled.py.
"""

import contextlib
import os
import pathlib
import pwd
import random
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from urllib import parse

import asyncpg
import pytest

from tests.store.behaviour.grounds import PostgresGround
from workron.store import postgres, protocol
from workron.store.postgres.database import Database
from workron.store.postgres.store import PostgresStore

_OLDEST = (1, 21)


class OnceGround(PostgresGround):
    """Every call has a new connection, and nobody hears a NOTIFY."""

    async def open(self) -> protocol.Store:
        rng = random.Random()
        pool = await asyncpg.create_pool(self.dsn, min_size=1, max_size=4, max_queries=1)
        beats = await asyncpg.create_pool(self.dsn, min_size=1, max_size=1, max_queries=1)
        return PostgresStore(
            Database(pool, url=self.dsn, rng=rng), Database(beats, url=self.dsn, rng=rng), rng
        )


class PgBouncerGround(PostgresGround):
    """Stores talk to PgBouncer; the test itself turns the clock behind its back."""

    def __init__(self, dsn: str, bouncer: str) -> None:
        super().__init__(dsn)
        database = parse.urlsplit(dsn).path
        self._pooled = f"postgresql://pooled@{bouncer}{database}?sslmode=disable"

    async def open(self) -> protocol.Store:
        return await postgres.open_postgres(self._pooled, rng=random.Random())


def found() -> str:
    """Give the path of a PgBouncer that knows prepared statements, or skip the test."""
    path = os.environ.get("WORKRON_TEST_PGBOUNCER") or shutil.which("pgbouncer")
    if path is None:
        pytest.skip("no pgbouncer on the PATH, and WORKRON_TEST_PGBOUNCER names none")
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"PgBouncer (\d+)\.(\d+)", told)
    if version is None or tuple(map(int, version.groups())) < _OLDEST:
        pytest.skip(f"{path} is {told.split(chr(10))[0]}; prepared statements need 1.21")
    return path


@contextlib.contextmanager
def running(binary: str, dsn: str, home: pathlib.Path) -> Iterator[str]:
    """Start PgBouncer before a server, give its host and port, and end it."""
    port = _free_port()
    (home / "pgbouncer.ini").write_text(_settings(dsn, port))
    user = pwd.getpwnam("nobody").pw_name if os.geteuid() == 0 else None
    if user:
        shutil.copy(binary, home / "pgbouncer")
        for path in (home, *home.iterdir()):
            shutil.chown(path, user)
    program = home / "pgbouncer" if user else binary
    process = subprocess.Popen(
        [program, "pgbouncer.ini"], cwd=home, user=user, stderr=subprocess.PIPE, text=True
    )
    try:
        _await_open(process)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _settings(dsn: str, port: int) -> str:
    parts = parse.urlsplit(dsn)
    about = {"host": parts.hostname, "port": parts.port, "user": parts.username}
    about |= {"password": parts.password} | dict(parse.parse_qsl(parts.query))
    server = " ".join(f"{key}={value}" for key, value in about.items() if value)
    return f"""
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_prepared_statements = 100
default_pool_size = 3
"""


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _await_open(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if "process up" in line:
            return
    raise RuntimeError("pgbouncer did not start")

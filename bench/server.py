"""A PostgreSQL for the bench, with durable commits."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
from collections.abc import AsyncIterator, Iterator, Mapping
from urllib import parse

import asyncpg

from tests import postgres_server
from workron.store.postgres import schema

_NUMBERS = itertools.count()


@contextlib.contextmanager
def running(settings: Mapping[str, str]) -> Iterator[str]:
    """Start the server of the tests, with durable commits."""
    with postgres_server.running(is_durable=True, settings=settings) as dsn:
        yield dsn


def program(dsn: str, name: str) -> str:
    """Return the path of a program that has the version of the server."""
    return str(next(_home(dsn).glob(f"*/*/bin/{name}")))


def data(dsn: str) -> pathlib.Path:
    """Return the data folder of the server."""
    return _home(dsn) / "data"


def _home(dsn: str) -> pathlib.Path:
    """Return the folder that contains the server, also its socket."""
    return pathlib.Path(parse.parse_qs(parse.urlsplit(dsn).query)["host"][0])


@contextlib.asynccontextmanager
async def empty(dsn: str) -> AsyncIterator[str]:
    """Yield an empty database, and drop it afterwards."""
    name = f"bench_{next(_NUMBERS)}"
    administrator = await asyncpg.connect(dsn)
    try:
        await administrator.execute(f"CREATE DATABASE {name}")
        # Writes that the previous database left over must not count here.
        await administrator.execute("CHECKPOINT")
        yield dsn.replace("/postgres?", f"/{name}?")
    finally:
        await administrator.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await administrator.close()


async def settle(url: str) -> None:
    """Analyze and write out what was inserted, so that it affects neither plans nor pauses."""
    connection = await asyncpg.connect(url)
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")
    await connection.close()


@contextlib.asynccontextmanager
async def database(dsn: str) -> AsyncIterator[str]:
    """Yield a database with the schema of Workron."""
    async with empty(dsn) as url:
        await schema.migrate(url)
        yield url

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
    """Start the server that the tests use, but with its disk taken seriously."""
    with postgres_server.running(is_durable=True, settings=settings) as dsn:
        yield dsn


def program(dsn: str, name: str) -> str:
    """Find a program that came with the server, and so is of its version."""
    return str(next(_home(dsn).glob(f"*/*/bin/{name}")))


def data(dsn: str) -> pathlib.Path:
    """Find the folder in which the server keeps what it is given."""
    return _home(dsn) / "data"


def _home(dsn: str) -> pathlib.Path:
    """Find what the server was made in: its socket is there too."""
    return pathlib.Path(parse.parse_qs(parse.urlsplit(dsn).query)["host"][0])


@contextlib.asynccontextmanager
async def empty(dsn: str) -> AsyncIterator[str]:
    """Give a database of its own, and remove it."""
    name = f"bench_{next(_NUMBERS)}"
    administrator = await asyncpg.connect(dsn)
    try:
        await administrator.execute(f"CREATE DATABASE {name}")
        # What the one before has left to be written is not this one's.
        await administrator.execute("CHECKPOINT")
        yield dsn.replace("/postgres?", f"/{name}?")
    finally:
        await administrator.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await administrator.close()


async def settle(url: str) -> None:
    """Have nobody's plans, or pauses, depend on what was put in before he came."""
    connection = await asyncpg.connect(url)
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")
    await connection.close()


@contextlib.asynccontextmanager
async def database(dsn: str) -> AsyncIterator[str]:
    """Give one that is ready for our jobs."""
    async with empty(dsn) as url:
        await schema.migrate(url)
        yield url

"""A PostgreSQL for the bench, whose commits are safe on the disk when they are over."""

import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator

import asyncpg

from tests import postgres_server
from workron.store import postgres

_NUMBERS = itertools.count()


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Start the server that the tests use, but with its disk taken seriously."""
    with postgres_server.running(is_durable=True) as dsn:
        yield dsn


@contextlib.asynccontextmanager
async def database(dsn: str) -> AsyncIterator[str]:
    """Give a database of its own, ready for jobs, and remove it."""
    name = f"bench_{next(_NUMBERS)}"
    administrator = await asyncpg.connect(dsn)
    try:
        await administrator.execute(f"CREATE DATABASE {name}")
        url = dsn.replace("/postgres?", f"/{name}?")
        await postgres.migrate(url)
        yield url
    finally:
        await administrator.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await administrator.close()

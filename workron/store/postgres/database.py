"""Connections, and calls that are repeated or translated when they fail.

Every acquire and every statement has a timeout. A verb that lost a deadlock is repeated: each is
one transaction and may be repeated. Called by the doors of this room.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, TypeVar

import asyncpg

from workron.store.postgres import faults

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from asyncpg import Record
    from asyncpg.pool import PoolConnectionProxy

    from workron.core.ports import Rng

_CONNECT_SECONDS: Final = 10.0
_ACQUIRE_SECONDS: Final = 10.0
_STATEMENT_SECONDS: Final = 60.0
_TRIES: Final = 8
_PAUSE_SECONDS: Final = 0.01

_T = TypeVar("_T")


class Database:
    """A few connections to one PostgreSQL."""

    def __init__(self, pool: asyncpg.Pool, *, url: str, rng: Rng) -> None:
        self._pool = pool
        self._rng = rng
        self.url = url

    async def fetch(self, statement: str, *values: Any) -> Sequence[Record]:
        """Run one statement, a transaction of its own."""

        async def call(connection: PoolConnectionProxy) -> Sequence[Record]:
            rows: Sequence[Record] = await connection.fetch(statement, *values)
            return rows

        return await self.run(call)

    async def fetch_value(self, statement: str, *values: Any) -> Any:
        """Run one statement and give the first column of its first row, or None."""
        rows = await self.fetch(statement, *values)
        return rows[0][0] if rows else None

    async def run(self, work: Callable[[PoolConnectionProxy], Awaitable[_T]]) -> _T:
        """Run `work` on a connection, again when it lost a deadlock."""
        for tries_left in reversed(range(_TRIES)):
            try:
                async with self._connection() as connection:
                    return await work(connection)
            except faults.RETRIED as lost:
                if not tries_left:
                    raise faults.translate(lost, self.url) from lost
                await asyncio.sleep(_PAUSE_SECONDS * (1 + self._rng.random()))
            except faults.DRIVER as cause:
                raise faults.translate(cause, self.url) from cause
        raise AssertionError("the last try either returns or raises")

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[PoolConnectionProxy]:
        async with self._pool.acquire(timeout=_ACQUIRE_SECONDS) as connection:
            yield connection

    async def close(self) -> None:
        """Give the connections back, whatever they are in the middle of."""
        try:
            await asyncio.wait_for(self._pool.close(), _ACQUIRE_SECONDS)
        except (TimeoutError, *faults.DRIVER):
            self._pool.terminate()


async def open_database(url: str, *, rng: Rng, connections: int) -> Database:
    """Connect, or say which database did not answer."""
    try:
        pool = await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=connections,
            timeout=_CONNECT_SECONDS,
            command_timeout=_STATEMENT_SECONDS,
        )
    except (*faults.DRIVER, ValueError) as cause:
        raise faults.translate(cause, url) from cause
    return Database(pool, url=url, rng=rng)

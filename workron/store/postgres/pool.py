"""Connections, and calls that are repeated or translated when they fail.

Every acquire and every statement has a timeout. A verb that gave way to another is tried again:
each is one transaction and may be repeated. Called by the doors of this room.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

import asyncpg

from workron.store.postgres import driver_errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from asyncpg import Connection, Record
    from asyncpg.pool import PoolConnectionProxy

    from workron.core.clock import Rng


_CONNECT_SECONDS: Final = 10.0
_ACQUIRE_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 0.5
"""A server that is there says goodbye at once, and nobody waits for any other."""
_STATEMENT_SECONDS: Final = 60.0
_QUERIES: Final = 10_000_000
"""So many a connection is asked before another takes its place: hours of the hardest work."""
_TRIES: Final = 8
_PAUSE_SECONDS: Final = 0.01

_T = TypeVar("_T")


class ConnectionPool:
    """A few connections to one PostgreSQL."""

    def __init__(self, pool: asyncpg.Pool, *, url: str, rng: Rng) -> None:
        self._pool = pool
        self._rng = rng
        self._kept: PoolConnectionProxy | None = None
        self._waiting = 0
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
        """Run `work` on a connection, again when it gave way to another transaction."""
        for tries_left in reversed(range(_TRIES)):
            try:
                return await self._lend(work)
            except driver_errors.DRIVER as cause:
                if not (tries_left and driver_errors.is_transient(cause)):
                    raise driver_errors.translate(cause, self.url) from cause
            await asyncio.sleep(_PAUSE_SECONDS * (1 + self._rng.random()))
        raise AssertionError("the last try either returns or raises")

    async def _lend(self, work: Callable[[PoolConnectionProxy], Awaitable[_T]]) -> _T:
        connection = self._take_kept() or await self._acquire()
        try:
            return await _ask(connection, work)
        finally:
            await self._give_back(connection)

    def _take_kept(self) -> PoolConnectionProxy | None:
        kept, self._kept = self._kept, None
        return kept if kept is not None and _is_open(kept) else None

    async def _acquire(self) -> PoolConnectionProxy:
        self._waiting += 1
        try:
            # Not the pool's own timeout, which makes a task of each, though few wait.
            async with asyncio.timeout(_ACQUIRE_SECONDS):
                return await self._pool.acquire()
        finally:
            self._waiting -= 1

    async def _give_back(self, connection: PoolConnectionProxy) -> None:
        """Keep it for the next call, unless one is kept or somebody waits for one.

        To take it from the pool and back costs a tenth of what a small call does; and calls one
        after the other find the session of the last one, where all is at hand.
        """
        if self._kept is None and not self._waiting:
            self._kept = connection
        else:
            await self._pool.release(connection, timeout=_ACQUIRE_SECONDS)

    async def close(self) -> None:
        """Give the connections back, whatever they are in the middle of."""
        # What is still in use is for the pool as well.
        self._waiting += 1
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                if kept := self._take_kept():
                    await self._pool.release(kept)
                await self._pool.close()
        except (TimeoutError, *driver_errors.DRIVER):
            self._pool.terminate()


def _is_open(connection: PoolConnectionProxy) -> bool:
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        # The server ended it, and so it went back to the pool by itself.
        return False


async def _ask(
    connection: PoolConnectionProxy, work: Callable[[PoolConnectionProxy], Awaitable[_T]]
) -> _T:
    """Run `work`, and drop the connection if it is given up.

    Giving it back would wait for the server to hear of that, and one that went silent never does:
    a beat that is given up in time would hold up its worker past the end of its lease.
    """
    try:
        return await work(connection)
    except (asyncio.CancelledError, TimeoutError):
        connection.terminate()
        raise


async def open_pool(
    url: str, *, rng: Rng, connections: int, statement_seconds: float | None = None
) -> ConnectionPool:
    """Connect, or say which database did not answer."""
    try:
        pool = await asyncpg.create_pool(
            url,
            init_size=1,
            # Whoever asks connects; the pool by itself would hold a place while it tries to.
            min_size=0,
            max_size=connections,
            # A session remembers how far it has read, and a new one reads all.
            max_queries=_QUERIES,
            timeout=_CONNECT_SECONDS,
            command_timeout=statement_seconds or _STATEMENT_SECONDS,
            reset=_leave_as_it_is,
        )
    except (*driver_errors.DRIVER, ValueError) as cause:
        raise driver_errors.translate(cause, url, tried="to connect") from cause
    return ConnectionPool(pool, url=url, rng=rng)


async def _leave_as_it_is(_: Connection) -> None:
    """Spare each call a round trip: what a verb leaves in its session is for the next one there."""

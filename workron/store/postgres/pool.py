"""A connection pool whose calls are retried after a deadlock and whose errors are translated.

Every acquire and every statement has a timeout. A call that lost a deadlock is tried again: each is
one transaction and can be repeated.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import asyncpg

from workron.retry import RetryBackoff, retry
from workron.store.postgres import driver_errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from asyncpg import Connection, Record
    from asyncpg.pool import PoolConnectionProxy

    from workron.core.clock import Rng


_QUERIES: Final = 10_000_000
"""Queries before a connection is replaced: hours under full load."""

_T = TypeVar("_T")


class PoolLimits(NamedTuple):
    """How long a pool waits, and how often it repeats a call that lost a deadlock."""

    connect_seconds: float = 10.0
    acquire_seconds: float = 10.0
    statement_seconds: float = 60.0
    close_seconds: float = 0.5
    """A reachable server closes a connection at once; nothing else is worth waiting for."""
    max_calls: int = 8
    pause_seconds: float = 0.02


_LIMITS: Final = PoolLimits()


class ConnectionPool:
    """A few connections to one PostgreSQL."""

    def __init__(
        self, pool: asyncpg.Pool, *, url: str, rng: Rng, limits: PoolLimits = _LIMITS
    ) -> None:
        self._pool = pool
        self._limits = limits
        self._backoff = RetryBackoff(
            *(limits.pause_seconds, limits.pause_seconds),
            jitter=0.5,
            rng=rng,
            max_calls=limits.max_calls,
        )
        self._kept: PoolConnectionProxy | None = None
        self._waiting = 0
        self.url = url

    async def fetch(self, statement: str, *values: Any) -> Sequence[Record]:
        """Run one statement, a transaction of its own."""
        return await self.run(lambda connection: connection.fetch(statement, *values))

    async def fetch_value(self, statement: str, *values: Any) -> Any:
        """Run one statement and return the first column of its first row, or None."""
        rows = await self.fetch(statement, *values)
        return rows[0][0] if rows else None

    async def run(self, work: Callable[[PoolConnectionProxy], Awaitable[_T]]) -> _T:
        """Run `work` on a connection, and again if it lost against another transaction."""
        try:
            return await retry(
                lambda: self._run_once(work),
                errors=asyncpg.PostgresError,
                backoff=self._backoff,
                on_retry=_raise_unless_transient,
            )
        except driver_errors.DRIVER as cause:
            raise driver_errors.translate(cause, self.url) from cause

    async def _run_once(self, work: Callable[[PoolConnectionProxy], Awaitable[_T]]) -> _T:
        connection = self._take_kept() or await self._acquire()
        try:
            return await work(connection)
        except (asyncio.CancelledError, TimeoutError):
            # Returning it to the pool would wait until the server confirms the cancellation, which
            # a dead line never does: a heartbeat would block its worker past the end of its lease.
            connection.terminate()
            raise
        finally:
            await self._put_back(connection)

    def _take_kept(self) -> PoolConnectionProxy | None:
        kept, self._kept = self._kept, None
        return kept if kept is not None and _is_open(kept) else None

    async def _acquire(self) -> PoolConnectionProxy:
        self._waiting += 1
        try:
            # Not the pool's own timeout, which makes a task of each, though few wait.
            async with asyncio.timeout(self._limits.acquire_seconds):
                return await self._pool.acquire()
        finally:
            self._waiting -= 1

    async def _put_back(self, connection: PoolConnectionProxy) -> None:
        """Keep the connection for the next call, unless one is kept or a call waits for one.

        Taking it from the pool costs a tenth of a small call. Calls in sequence also use the same
        server session, which has planned them.
        """
        if self._kept is None and not self._waiting:
            self._kept = connection
        else:
            await self._pool.release(connection, timeout=self._limits.acquire_seconds)

    async def close(self) -> None:
        """Close the connections, even those in use."""
        # From now on, connections in use go back to the pool.
        self._waiting += 1
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                if kept := self._take_kept():
                    await self._pool.release(kept)
                await self._pool.close()
        except (TimeoutError, *driver_errors.DRIVER):
            self._pool.terminate()


def _raise_unless_transient(error: asyncpg.PostgresError, _: float) -> None:
    if not driver_errors.is_transient(error):
        raise error


def _is_open(connection: PoolConnectionProxy) -> bool:
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        # The server closed it, so it is back in the pool already.
        return False


async def open_pool(
    url: str, *, rng: Rng, connections: int, limits: PoolLimits = _LIMITS
) -> ConnectionPool:
    """Open a pool, and one connection in it."""
    try:
        pool = await asyncpg.create_pool(
            url,
            init_size=1,
            # Calls connect; a background connect of the pool would occupy a slot while it tries.
            min_size=0,
            max_size=connections,
            # A new session plans every function that it calls.
            max_queries=_QUERIES,
            timeout=limits.connect_seconds,
            command_timeout=limits.statement_seconds,
            reset=_no_reset,
        )
    except (*driver_errors.DRIVER, ValueError) as cause:
        raise driver_errors.translate(cause, url, action=driver_errors.CONNECT) from cause
    return ConnectionPool(pool, url=url, rng=rng, limits=limits)


async def _no_reset(_: Connection) -> None:
    """Save a round trip per call."""

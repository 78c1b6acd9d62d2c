"""The connection that is kept between two calls: it blocks no other call, and is open."""

import asyncio
import random
from typing import Any

import asyncpg

from workron.store.postgres.pool import ConnectionPool, PoolLimits, open_pool

_SESSION = "SELECT pg_backend_pid()"


async def _open(url: str, connections: int, **limits: Any) -> ConnectionPool:
    given = PoolLimits(**limits)
    return await open_pool(url, rng=random.Random(), connections=connections, limits=given)


def _connection_in_use(
    one: ConnectionPool,
) -> tuple[asyncio.Event, asyncio.Event, asyncio.Task[int]]:
    """Use a connection until the second event is set; the first is set once it is in use."""
    is_used, may_end = asyncio.Event(), asyncio.Event()

    async def work(connection: asyncpg.pool.PoolConnectionProxy) -> int:
        is_used.set()
        await may_end.wait()
        return int(await connection.fetchval(_SESSION))

    return is_used, may_end, asyncio.create_task(one.run(work))


async def test_sequential_calls_use_one_session_when_others_ran_concurrently(
    fresh_database: str,
) -> None:
    one = await _open(fresh_database, 2)
    is_used, may_end, long = _connection_in_use(one)
    await is_used.wait()
    beside = await one.fetch_value(_SESSION)
    may_end.set()
    assert await long != beside
    assert await one.fetch_value(_SESSION) == beside
    await one.close()


async def test_kept_connection_is_used_when_a_call_waits_for_one(fresh_database: str) -> None:
    one = await _open(fresh_database, 1)
    is_used, may_end, long = _connection_in_use(one)
    await is_used.wait()
    waiting = asyncio.create_task(one.fetch_value(_SESSION))
    await asyncio.sleep(0)
    may_end.set()
    assert await waiting == await long
    await one.close()


async def test_kept_connection_is_not_used_when_the_server_ended_its_session(
    fresh_database: str,
) -> None:
    one = await _open(fresh_database, 1, max_calls=1)
    session = await one.fetch_value(_SESSION)
    ended = asyncio.Event()

    async def work(connection: asyncpg.pool.PoolConnectionProxy) -> None:
        connection.add_termination_listener(lambda _: ended.set())

    await one.run(work)
    other = await asyncpg.connect(fresh_database)
    await other.execute("SELECT pg_terminate_backend($1)", session)
    await ended.wait()
    assert await one.fetch_value(_SESSION) != session
    await one.close()
    await other.close()


async def test_close_does_not_wait_when_a_connection_is_kept(fresh_database: str) -> None:
    one = await _open(fresh_database, 1, close_seconds=60)
    await one.fetch_value(_SESSION)
    async with asyncio.timeout(10):
        await one.close()
    assert not one._pool.get_size()


async def test_connection_is_not_kept_when_it_is_in_use_at_close(fresh_database: str) -> None:
    one = await _open(fresh_database, 1, close_seconds=60)
    is_used, may_end, long = _connection_in_use(one)
    await is_used.wait()
    closing = asyncio.create_task(one.close())
    await asyncio.sleep(0)
    may_end.set()
    await long
    async with asyncio.timeout(10):
        await closing
    assert not one._pool.get_size()

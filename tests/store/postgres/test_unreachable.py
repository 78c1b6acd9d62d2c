"""A database that fails to answer: the error names it and the operation."""

import asyncio
import contextlib
import random
import shlex
from collections.abc import AsyncIterator
from typing import Any
from urllib import parse

import asyncpg
import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY
from tests.store.postgres.faulty_proxy import FaultyProxy, hang_up
from workron.core import errors
from workron.store.postgres import schema, store
from workron.store.postgres.pool import ConnectionPool, PoolLimits, open_pool
from workron.store.postgres.store import PostgresStore


async def _open(url: str) -> PostgresStore:
    return await store.open_postgres(url, rng=random.Random())


async def _open_pool(url: str, **limits: float) -> ConnectionPool:
    given = PoolLimits(**limits)  # type: ignore[arg-type]
    return await open_pool(url, rng=random.Random(), connections=1, limits=given)


_either = pytest.mark.parametrize("call", [_open, schema.migrate])


@_either
@pytest.mark.parametrize(
    ("url", "shown", "what"),
    [
        (
            "postgresql://me:secret@127.0.0.1:1/db",
            "postgresql://me:***@127.0.0.1:1/db",
            "refused|failed|Connect",
        ),
        ("postgresql://127.0.0.1:1/db?password=secret", "password=***", "refused|failed|Connect"),
        (
            "postgresql://me:s/e#cret@127.0.0.1:1/db",
            "postgresql://me:***@127.0.0.1:1/db",
            "connect",
        ),
        (
            "postgresql://me:secret@nowhere.invalid/db",
            "postgresql://me:***@nowhere.invalid",
            "connect",
        ),
        (
            "postgresql://me:secret@127.0.0.1:port/db",
            "postgresql://me:***@127.0.0.1:port/db",
            "port",
        ),
    ],
)
async def test_error_names_the_database_without_its_password_when_it_does_not_answer(
    call: Any, url: str, shown: str, what: str
) -> None:
    with pytest.raises(errors.StoreUnreachableError, match=what) as refusal:
        await call(url)
    assert shown in str(refusal.value)
    assert "cret" not in str(refusal.value)
    assert str(refusal.value).startswith("cannot connect to postgresql://")


@_either
async def test_error_says_how_to_check_the_server_when_it_refuses_connections(call: Any) -> None:
    with pytest.raises(errors.StoreUnreachableError) as refusal:
        await call("postgresql://me:secret@127.0.0.1:1/jobs")
    assert str(refusal.value) == (
        "cannot connect to postgresql://me:***@127.0.0.1:1/jobs: connection refused."
        " Is the server running? Try: pg_isready -h 127.0.0.1 -p 1"
    )


@_either
async def test_error_names_the_database_when_the_server_has_none_of_that_name(
    call: Any, postgres_dsn: str
) -> None:
    url = parse.urlsplit(postgres_dsn)._replace(path="/nowhere").geturl()
    with pytest.raises(errors.StoreUnreachableError, match='database "nowhere" does not exist'):
        await call(url)


@contextlib.asynccontextmanager
async def _server(answer: bytes | None) -> AsyncIterator[str]:
    """Serve one answer to each client, or none, and yield the URL."""
    is_over, calls = asyncio.Event(), []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(asyncio.current_task())
        await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)
        if answer is None:
            await is_over.wait()
        else:
            writer.write(answer)
        await hang_up(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield f"postgresql://me:secret@127.0.0.1:{port}/db?sslmode=disable"
    is_over.set()
    server.close()
    await asyncio.gather(*filter(None, calls), return_exceptions=True)


@_either
async def test_error_says_that_the_password_is_wrong(call: Any) -> None:
    about = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user\0\0"
    async with _server(b"E" + (len(about) + 4).to_bytes(4) + about) as url:
        with pytest.raises(errors.StoreUnreachableError, match="password authentication failed"):
            await call(url)


async def test_error_names_the_timeout_when_the_server_is_silent() -> None:
    async with _server(None) as url:
        with pytest.raises(errors.StoreUnreachableError, match="no answer in time"):
            await _open_pool(url, connect_seconds=0.01)


async def test_error_names_the_command_when_the_database_is_empty(empty_database: str) -> None:
    with pytest.raises(errors.SchemaError) as refusal:
        await _open(empty_database)
    assert f"`workron migrate --store {shlex.quote(empty_database)}`" in str(refusal.value)


async def test_command_for_an_empty_database_has_no_password_and_no_stars(
    empty_database: str,
) -> None:
    url = empty_database.replace("postgres@", "postgres:s3cret@")
    with pytest.raises(errors.SchemaError, match="`workron migrate`, with WORKRON_STORE set"):
        await _open(url)


async def test_calls_work_again_when_the_server_was_away(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    await remote.submit([plans.job()])
    await wire.cut()
    with pytest.raises(errors.StoreUnreachableError, match=r"127\.0\.0\.1"):
        await remote.list_runs()
    await wire.mend()
    assert len(await remote.list_runs()) == 1


async def test_call_fails_when_the_server_goes_away_during_it(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    sleeping = asyncio.create_task(remote._database.fetch("SELECT pg_sleep(60)"))
    while not await remote._database.fetch_value(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE wait_event = 'PgSleep' AND datname = current_database()"
    ):
        pass
    await wire.cut()
    with pytest.raises(errors.StoreUnreachableError):
        await sleeping


async def test_store_continues_when_all_its_connections_are_ended(
    fresh_database: str,
) -> None:
    store = await _open(fresh_database)
    run = (await store.submit([plans.job()]))[0].run
    admin = await asyncpg.connect(fresh_database)
    await admin.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await admin.close()
    assert [row.run for row in await store.list_runs()] == [run]
    assert (await store.list_heartbeats(), await store.propagate(MANY)) == ([], 0)
    await store.close()


async def test_error_is_that_of_a_full_store_when_transactions_are_read_only(
    fresh_database: str,
) -> None:
    await _set(fresh_database, "default_transaction_read_only = on")
    store = await _open(fresh_database)
    with pytest.raises(errors.StoreFullError, match="read-only transaction"):
        await store.submit([plans.job()])
    assert await store.list_runs() == []
    await store.close()


async def test_error_is_that_of_a_busy_store_when_a_statement_takes_too_long(
    fresh_database: str,
) -> None:
    await _set(fresh_database, "statement_timeout = '20ms'")
    database = await _open_pool(fresh_database)
    with pytest.raises(errors.StoreBusyError, match="statement timeout"):
        await database.fetch("SELECT pg_sleep(60)")
    assert await database.fetch_value("SELECT 1") == 1
    await database.close()


async def test_error_says_so_when_a_statement_is_not_answered_in_time(
    fresh_database: str,
) -> None:
    database = await _open_pool(fresh_database, statement_seconds=0.5)
    with pytest.raises(errors.StoreUnreachableError, match="no answer in time"):
        await database.fetch("SELECT pg_sleep(60)")
    assert await database.fetch_value("SELECT 1") == 1
    await database.close()


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("40001", errors.StoreBusyError),
        ("40P01", errors.StoreBusyError),
        ("58030", errors.StoreUnreachableError),
    ],
)
async def test_error_is_transient_when_every_attempt_was_a_deadlock(
    fresh_database: str, state: str, kind: type[Exception]
) -> None:
    database = await _open_pool(fresh_database, pause_seconds=0)
    with pytest.raises(kind):
        await database.fetch(f"DO $$ BEGIN RAISE 'no' USING ERRCODE = '{state}'; END $$")
    await database.close()


async def test_error_says_unreachable_when_the_driver_fails_after_a_lost_connection(
    fresh_database: str,
) -> None:
    async def mix_up(_: object) -> None:
        raise asyncpg.InternalClientError("cannot switch to state 12; another is in progress")

    database = await _open_pool(fresh_database)
    with pytest.raises(errors.StoreUnreachableError):
        await database.run(mix_up)
    await database.close()


async def _set(dsn: str, setting: str) -> None:
    admin = await asyncpg.connect(dsn)
    name = parse.urlsplit(dsn).path.removeprefix("/")
    await admin.execute(f'ALTER DATABASE "{name}" SET {setting}')
    await admin.close()


async def test_next_call_connects_when_the_pool_lost_its_connection(
    fresh_database: str,
) -> None:
    administrator = await asyncpg.connect(fresh_database)
    database = await _open_pool(fresh_database)
    mine = asyncio.all_tasks()
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    await administrator.fetch(f"SELECT pg_terminate_backend(pid, 10000) {others}")
    while database._pool.get_size():
        await asyncio.sleep(0)
    # It would connect at once, and a connection attempt that hangs would block every caller.
    await administrator.execute("SELECT 1")
    assert asyncio.all_tasks() == mine
    assert await database.fetch_value(f"SELECT count(*) {others}") == 1
    await database.close()
    await administrator.close()

"""Behaviour behind a real PgBouncer in transaction mode; skipped without one."""

import asyncio
import contextlib
import pathlib
import random
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import mint_boot
from tests.store.postgres import poolers
from workron.core import errors
from workron.store.postgres import schema
from workron.store.postgres.store import PostgresStore, open_postgres, open_worker
from workron.store.types import PoolGrant, Registration


@contextlib.asynccontextmanager
async def _opened(dsn: str) -> AsyncIterator[PostgresStore]:
    store = await open_postgres(dsn, rng=random.Random())
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def _holding_connections(dsn: str, count: int) -> AsyncIterator[list[asyncpg.Connection]]:
    """Occupy this many of the pooler's server connections at once, in transactions."""
    async with contextlib.AsyncExitStack() as stack:
        taken = []
        for _ in range(count):
            connection = await asyncpg.connect(dsn)
            stack.push_async_callback(connection.close)
            await stack.enter_async_context(connection.transaction())
            await connection.execute("SELECT 1")
            taken.append(connection)
        yield taken


async def test_no_shared_connection_listens(fresh_database: str, bouncer: pathlib.Path) -> None:
    pooled = poolers.through(bouncer, fresh_database)
    async with (
        _opened(pooled) as store,
        _holding_connections(pooled, poolers.CONNECTIONS) as others,
    ):
        channels = [await other.fetch("SELECT pg_listening_channels()") for other in others]
        assert channels == [[]] * poolers.CONNECTIONS
        assert store.url == pooled


async def test_notification_through_the_pooler_reaches_a_direct_listener(
    fresh_database: str, bouncer: pathlib.Path
) -> None:
    async with (
        _opened(fresh_database) as listener,
        _opened(poolers.through(bouncer, fresh_database)) as other,
    ):
        await listener.wait_for_work(0)
        waiting = asyncio.create_task(listener.wait_for_work(600.0))
        await asyncio.sleep(0)
        await other.submit([plans.job()])
        await waiting


async def test_database_is_migrated_through_the_pooler(
    empty_database: str, bouncer: pathlib.Path
) -> None:
    pooled = poolers.through(bouncer, empty_database)
    assert await schema.migrate(pooled)
    async with _opened(pooled) as store:
        assert len(await store.submit([plans.job()])) == 1


async def test_error_names_the_setting_when_the_pooler_mixes_up_prepared_statements(
    fresh_database: str, postgres_dsn: str
) -> None:
    with poolers.running(postgres_dsn, prepared_statements=0) as bouncer:
        pooled = poolers.through(bouncer, fresh_database)
        async with _opened(pooled) as store:
            await store.list_runs()
            async with _holding_connections(pooled, 1):
                with pytest.raises(errors.StoreError, match="max_prepared_statements above 0"):
                    await store.list_runs()


_ADMISSION = PoolGrant(plans.NAMESPACE, "own", "token", 10.0, "secret", connections=9)


async def _drop(dsn: str) -> None:
    admin = await asyncpg.connect(dsn)
    role = await admin.fetchval("SELECT workron.pool_role_name($1, $2)", plans.NAMESPACE, "own")
    await admin.execute(f'DROP OWNED BY "{role}" CASCADE; DROP ROLE "{role}"')
    await admin.close()


async def test_pool_is_granted_when_the_pooler_looks_up_roles(
    fresh_database: str, postgres_dsn: str
) -> None:
    with poolers.set_up(lambda home: poolers.logging_in(postgres_dsn, home, asks=True)) as bouncer:
        async with _opened(poolers.entered(bouncer, fresh_database)) as store:
            admitted = await store.grant_pool(_ADMISSION)
            assert str(bouncer) in admitted.url
            worker = await open_worker(admitted.url, rng=random.Random())
            session = await worker.register(Registration("token", "pod", mint_boot(), 1))
            await worker.heartbeat(session.key)
            await worker.deregister(session.key)
            await worker.close()
            assert await store.revoke_pool(plans.NAMESPACE, "own")


async def test_grant_fails_when_the_pooler_does_not_know_the_role(
    fresh_database: str, postgres_dsn: str
) -> None:
    with poolers.set_up(lambda home: poolers.logging_in(postgres_dsn, home, asks=False)) as bouncer:
        async with _opened(poolers.entered(bouncer, fresh_database)) as store:
            with pytest.raises(errors.PermissionDeniedError, match="auth_query") as refusal:
                await store.grant_pool(_ADMISSION)
    assert "secret" not in str(refusal.value)
    await _drop(fresh_database)

"""Fixtures of the tests of PostgreSQL."""

import pathlib
import random
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from tests.store.postgres import faulty_proxy, poolers, roles
from tests.store.postgres.faulty_proxy import FaultyProxy
from tests.store.postgres.open_transaction import StoppedClock
from tests.store.postgres.roles import Role
from tests.store.postgres.stage import Stage
from workron.store.postgres.store import PostgresStore, open_postgres


@pytest.fixture
async def stage(fresh_database: str) -> AsyncIterator[Stage]:
    made = Stage(fresh_database)
    try:
        await made.open()
        yield made
    finally:
        await made.close()


@pytest.fixture
async def stopped_clock(stage: Stage) -> StoppedClock:
    """Return the clock of the database, which stands still until the test advances it."""
    clock = StoppedClock(stage)
    await clock.advance()
    return clock


@pytest.fixture
async def held(stage: Stage, stopped_clock: StoppedClock) -> AsyncIterator[StoppedClock]:
    """Keep a snapshot open from before the test, and stop the clock."""
    holder = await asyncpg.connect(stage.dsn)
    await holder.execute(
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM workron.ready"
    )
    yield stopped_clock
    await holder.close()


@pytest.fixture
async def role(fresh_database: str) -> AsyncIterator[Role]:
    async with roles.made_in(fresh_database) as made:
        yield made


@pytest.fixture
async def wire(fresh_database: str) -> AsyncIterator[FaultyProxy]:
    async with faulty_proxy.made_to(fresh_database) as made:
        yield made


@pytest.fixture
async def remote(wire: FaultyProxy) -> AsyncIterator[PostgresStore]:
    """A store that reaches its database through the proxy."""
    store = await open_postgres(wire.dsn, rng=random.Random())
    yield store
    await store.close()


@pytest.fixture(scope="session")
def bouncer(postgres_dsn: str) -> Iterator[pathlib.Path]:
    """Return the folder of the socket of a PgBouncer; skip the test without one."""
    with poolers.running(postgres_dsn) as where:
        yield where

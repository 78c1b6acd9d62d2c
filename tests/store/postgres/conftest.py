"""What the tests of PostgreSQL may ask for: a stage, a role, a store on a wire, and PgBouncer."""

import pathlib
import random
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from tests.store.postgres import pooler, roles
from tests.store.postgres import wire as wires
from tests.store.postgres.roles import Role
from tests.store.postgres.stage import Stage
from tests.store.postgres.standstill import StillClock
from tests.store.postgres.wire import Wire
from workron.store.postgres.store import PostgresStore, open_postgres


@pytest.fixture
async def stage(fresh_database: str) -> AsyncIterator[Stage]:
    made = Stage(fresh_database)
    try:
        await made.raise_curtain()
        yield made
    finally:
        await made.close()


@pytest.fixture
async def still(stage: Stage) -> StillClock:
    """Let no time pass in the database but what the test says."""
    clock = StillClock(stage)
    await clock.go_on()
    return clock


@pytest.fixture
async def held(stage: Stage, still: StillClock) -> AsyncIterator[StillClock]:
    """Let somebody hold a snapshot of before all that the test does, and no time pass."""
    holder = await asyncpg.connect(stage.dsn)
    await holder.execute(
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM workron.ready"
    )
    yield still
    await holder.close()


@pytest.fixture
async def role(fresh_database: str) -> AsyncIterator[Role]:
    async with roles.made_in(fresh_database) as made:
        yield made


@pytest.fixture
async def wire(fresh_database: str) -> AsyncIterator[Wire]:
    async with wires.made_to(fresh_database) as made:
        yield made


@pytest.fixture
async def remote(wire: Wire) -> AsyncIterator[PostgresStore]:
    """A store that reaches its database over the wire."""
    store = await open_postgres(wire.dsn, rng=random.Random())
    yield store
    await store.close()


@pytest.fixture(scope="session")
def bouncer(postgres_dsn: str) -> Iterator[pathlib.Path]:
    """The folder of the socket of a PgBouncer in front of the server; skips where there is none."""
    with pooler.running(postgres_dsn) as where:
        yield where

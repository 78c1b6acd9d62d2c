"""submit: a submission that draws the ids of another run is repeated with new ones."""

import random
from collections.abc import AsyncIterator

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.databases import PostgresUnderTest
from workron.core import errors
from workron.store.postgres.store import open_postgres


class _RepeatingRandom(random.Random):
    """A source of random numbers whose first ids are the same."""

    def __init__(self, repetitions: int) -> None:
        super().__init__(1)
        self.repetitions = repetitions

    def getrandbits(self, k: int, /) -> int:
        self.repetitions -= 1
        return 0 if self.repetitions >= 0 else super().getrandbits(k)


@pytest.fixture
async def database(fresh_database: str) -> AsyncIterator[str]:
    """A database whose clock stands still, so that ids differ in their random bits only."""
    database = PostgresUnderTest(fresh_database)
    await database.clear()
    yield fresh_database
    await database.close()


async def test_submission_draws_new_ids_when_another_run_has_them(database: str) -> None:
    store = await open_postgres(database, rng=_RepeatingRandom(3))
    (one,) = await store.submit([plans.job("one")])
    (two,) = await store.submit([plans.job("two")])
    assert one.run != two.run
    assert [row.name for row in await store.list_runs()] == ["two", "one"]
    await store.close()


async def test_submission_fails_when_every_draw_has_the_ids_of_another_run(database: str) -> None:
    store = await open_postgres(database, rng=_RepeatingRandom(100))
    await store.submit([plans.job("one")])
    with pytest.raises(errors.StoreDataError):
        await store.submit([plans.job("two")])
    assert [row.name for row in await store.list_runs()] == ["one"]
    await store.close()

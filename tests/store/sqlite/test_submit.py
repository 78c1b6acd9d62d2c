"""submit: overlapping ids, and values that SQLite cannot store."""

import asyncio
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.databases import FakeClock
from tests.store.behaviour.plans import task
from tests.store.sqlite import opening
from workron.core import errors
from workron.store.sqlite import store as sqlite_store
from workron.store.sqlite.store import SqliteStore


class Stuck(random.Random):
    """A source of random numbers that always returns the same."""

    def getrandbits(self, k: int, /) -> int:
        return 0 if k < 128 else super().getrandbits(k)


async def test_runs_do_not_overlap_when_they_draw_the_same_id() -> None:
    store = await sqlite_store.open_sqlite(None, clock=FakeClock(), rng=Stuck())
    sizes = [3, 1, 5]
    wanted = [plans.dag(f"flow{size}", a=task(count=size)) for size in sizes]
    await store.submit([wanted[0]])
    await store.submit(wanted[1:])
    ranges = sorted((row.run, row.last_job) for row in await store.list_runs())
    assert [last - run for run, last in ranges] == [4, 2, 6]
    assert all(last < run for (_, last), (run, _) in itertools.pairwise(ranges))
    await store.close()


@pytest.mark.parametrize("value", ["\ud800", float("nan"), 10**5000], ids=["half", "nan", "long"])
async def test_call_is_rejected_when_a_value_cannot_be_stored(
    store: SqliteStore, value: Any
) -> None:
    with pytest.raises(errors.StoreDataError):
        await store.submit([plans.job("fine"), plans.job("odd", metadata={"value": value})])
    assert await store.list_runs() == []


async def test_priority_out_of_range_is_rejected(store: SqliteStore) -> None:
    with pytest.raises(errors.StoreDataError, match=r"store\.db: a value cannot be stored"):
        await store.submit([plans.job(priority=2**63)])


async def test_readers_see_whole_submissions_only(store: SqliteStore, path: Path) -> None:
    wanted = [plans.dag(f"flow{i}", a=task(count=500)) for i in range(5)]
    reader = await opening.open_store(path)
    submitting = asyncio.ensure_future(store.submit(wanted))
    seen = set()
    while not submitting.done():
        seen.add(len(await reader.list_runs()))
    seen.add(len(await reader.list_runs()))
    assert seen <= {0, 5}
    assert 5 in seen
    await reader.close()


async def test_each_run_of_a_call_is_linked_to_its_own_upstreams(store: SqliteStore) -> None:
    (up,) = await store.submit([plans.job("up")])
    wanted = [plans.job(name, outside=[plans.outside("up")]) for name in ("one", "two")]
    downs = await store.submit(wanted)
    blockers = [await store.list_blockers(down.run) for down in downs]
    assert [[one.job for one in found] for found in blockers] == [[up.run], [up.run]]

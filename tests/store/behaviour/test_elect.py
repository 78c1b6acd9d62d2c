"""elect and resign: one maintainer at a time."""

import asyncio
from datetime import timedelta

from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import mint_boot

LEASE = 10.0


async def test_first_is_elected_and_stays(harness: Harness) -> None:
    one = mint_boot()
    assert await harness.store.elect(one, LEASE)
    assert await harness.store.elect(one, LEASE)


async def test_second_is_refused_while_the_lease_runs(harness: Harness) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.advance(timedelta(seconds=9))
    assert not await harness.store.elect(two, LEASE)


async def test_second_is_elected_when_the_lease_has_run_out(harness: Harness) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.advance(timedelta(seconds=11))
    assert await harness.store.elect(two, LEASE)
    assert not await harness.store.elect(one, LEASE)


async def test_second_is_elected_within_a_lease_when_the_clock_was_put_back(
    harness: Harness,
) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.advance(timedelta(hours=-1))
    assert await harness.store.elect(two, LEASE)
    assert not await harness.store.elect(one, LEASE)


async def test_lease_runs_on_from_each_election(harness: Harness) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.advance(timedelta(seconds=9))
    await harness.store.elect(one, LEASE)
    await harness.advance(timedelta(seconds=9))
    assert not await harness.store.elect(two, LEASE)


async def test_second_is_elected_at_once_when_the_first_resigned(harness: Harness) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.store.resign(one)
    assert await harness.store.elect(two, LEASE)


async def test_only_the_maintainer_can_resign(harness: Harness) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.store.resign(two)
    assert not await harness.store.elect(two, LEASE)


async def test_one_is_elected_when_many_stand_at_once(harness: Harness) -> None:
    stores = [await harness.another() for _ in range(5)]
    won = await asyncio.gather(*(store.elect(mint_boot(), LEASE) for store in stores))
    assert sum(won) == 1

"""elect and resign: one maintainer at a time."""

import asyncio
from datetime import timedelta

from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import mint_boot

LEASE = 10.0


async def test_first_holder_stays_elected(harness: Harness) -> None:
    one = mint_boot()
    assert await harness.store.elect(one, LEASE)
    assert await harness.store.elect(one, LEASE)


async def test_second_holder_is_rejected_while_the_lease_is_valid(harness: Harness) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.advance(timedelta(seconds=9))
    assert not await harness.store.elect(two, LEASE)


async def test_second_holder_is_elected_when_the_lease_has_expired(harness: Harness) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.advance(timedelta(seconds=11))
    assert await harness.store.elect(two, LEASE)
    assert not await harness.store.elect(one, LEASE)


async def test_second_holder_is_elected_within_a_lease_when_the_clock_was_set_back(
    harness: Harness,
) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.advance(timedelta(hours=-1))
    assert await harness.store.elect(two, LEASE)
    assert not await harness.store.elect(one, LEASE)


async def test_each_election_renews_the_lease(harness: Harness) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.advance(timedelta(seconds=9))
    await harness.store.elect(one, LEASE)
    await harness.advance(timedelta(seconds=9))
    assert not await harness.store.elect(two, LEASE)


async def test_second_holder_is_elected_at_once_when_the_first_has_resigned(
    harness: Harness,
) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.store.resign(one)
    assert await harness.store.elect(two, LEASE)


async def test_only_the_maintainer_can_resign(harness: Harness) -> None:
    one, two = mint_boot(), mint_boot()
    await harness.store.elect(one, LEASE)
    await harness.store.resign(two)
    assert not await harness.store.elect(two, LEASE)


async def test_one_holder_is_elected_when_many_try_at_once(harness: Harness) -> None:
    stores = [await harness.open_another() for _ in range(5)]
    won = await asyncio.gather(*(store.elect(mint_boot(), LEASE) for store in stores))
    assert sum(won) == 1

"""The workqueue keeps the newest of each object, and never grows without end."""

import asyncio
import uuid

from tests.controller.manual_clock import ManualClock
from workron.core.plan import Kind
from workron_controller.jobs import workqueue
from workron_controller.jobs.workqueue import QueuedObject, Workqueue


def _news(number: int, size: int = 10, edition: bytes = b"a") -> QueuedObject:
    return QueuedObject(uuid.UUID(int=number), Kind.JOB, size * edition)


async def test_only_the_newest_of_an_object_is_kept() -> None:
    box = Workqueue(ManualClock())
    box.add(_news(1, edition=b"b"))
    box.add(_news(2))
    box.add(_news(1, edition=b"c"))
    assert await box.take(10, 1000) == [_news(1, edition=b"c"), _news(2)]
    assert len(box) == 0


async def test_who_finds_it_full_has_everything_listed_again() -> None:
    box = Workqueue(ManualClock())
    for number in range(workqueue.MAX_QUEUED_OBJECTS):
        box.add(_news(number, size=1))
    assert not box.has_overflowed.is_set()
    box.add(_news(0, size=1, edition=b"c"))
    assert not box.has_overflowed.is_set()
    box.add(_news(workqueue.MAX_QUEUED_OBJECTS))
    assert box.has_overflowed.is_set()
    assert len(box) == workqueue.MAX_QUEUED_OBJECTS


async def test_lag_is_that_of_the_first_that_is_not_carried_yet() -> None:
    time = ManualClock()
    box = Workqueue(time)
    assert box.lag == 0
    box.add(_news(1))
    time.turn(5)
    box.add(_news(2))
    box.add(_news(1, edition=b"c"))
    assert box.lag == 5
    first = await box.take(1, 1000)
    time.turn(1)
    # In hand is not in the store.
    assert box.lag == 6
    box.requeue(first)
    time.turn(1)
    assert box.lag == 7
    assert await box.take(1, 1000) == [_news(2)]
    await box.take(1, 1000)
    assert box.lag == 7
    waits = asyncio.create_task(box.take(1, 1000))
    await asyncio.sleep(0)
    # Who takes more has carried the rest.
    assert box.lag == 0
    waits.cancel()


async def test_large_objects_fill_it_too() -> None:
    box = Workqueue(ManualClock())
    for number in range(60):
        box.add(_news(number, size=1_500_000))
    assert box.has_overflowed.is_set()
    assert len(box) == 44
    taken = await box.take(100, 1 << 40)
    box.has_overflowed.clear()
    box.requeue(taken)
    assert not box.has_overflowed.is_set()


async def test_as_much_is_taken_as_is_asked_for_and_at_least_one() -> None:
    box = Workqueue(ManualClock())
    for number in range(5):
        box.add(_news(number))
    assert len(await box.take(2, 1000)) == 2
    assert len(await box.take(10, 15)) == 1
    assert len(await box.take(10, 5)) == 1
    assert len(await box.take(10, 1000)) == 1


async def test_who_takes_waits_for_something() -> None:
    box = Workqueue(ManualClock())
    taking = asyncio.create_task(box.take(1, 1000))
    await asyncio.sleep(0)
    assert not taking.done()
    box.add(_news(1))
    assert await taking == [_news(1)]


async def test_what_is_put_back_gives_way_to_what_has_come_meanwhile() -> None:
    box = Workqueue(ManualClock())
    box.add(_news(1, edition=b"b"))
    box.add(_news(2))
    taken = await box.take(2, 1000)
    box.add(_news(1, edition=b"c"))
    box.requeue(taken)
    assert await box.take(10, 1000) == [_news(1, edition=b"c"), _news(2)]

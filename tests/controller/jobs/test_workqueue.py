"""The workqueue keeps the newest version of each object, and is bounded."""

import asyncio
import uuid

from tests.controller.manual_clock import ManualClock
from workron.core.plan import Kind
from workron_controller.jobs import workqueue
from workron_controller.jobs.workqueue import QueuedObject, Workqueue


def _item(number: int, size: int = 10, content: bytes = b"a") -> QueuedObject:
    return QueuedObject(uuid.UUID(int=number), Kind.JOB, size * content)


async def test_newest_version_is_kept_when_an_object_is_added_twice() -> None:
    queue = Workqueue(ManualClock())
    queue.add(_item(1, content=b"b"))
    queue.add(_item(2))
    queue.add(_item(1, content=b"c"))
    assert await queue.take(10, 1000) == [_item(1, content=b"c"), _item(2)]
    assert len(queue) == 0


async def test_queue_overflows_when_it_has_too_many_objects() -> None:
    queue = Workqueue(ManualClock())
    for number in range(workqueue.MAX_QUEUED_OBJECTS):
        queue.add(_item(number, size=1))
    assert not queue.has_overflowed.is_set()
    queue.add(_item(0, size=1, content=b"c"))
    assert not queue.has_overflowed.is_set()
    queue.add(_item(workqueue.MAX_QUEUED_OBJECTS))
    assert queue.has_overflowed.is_set()
    assert len(queue) == workqueue.MAX_QUEUED_OBJECTS


async def test_lag_counts_from_the_oldest_object_that_is_not_submitted() -> None:
    time = ManualClock()
    queue = Workqueue(time)
    assert queue.lag == 0
    queue.add(_item(1))
    time.advance(5)
    queue.add(_item(2))
    queue.add(_item(1, content=b"c"))
    assert queue.lag == 5
    first = await queue.take(1, 1000)
    time.advance(1)
    # Taken objects are not in the store yet.
    assert queue.lag == 6
    queue.requeue(first)
    time.advance(1)
    assert queue.lag == 7
    assert await queue.take(1, 1000) == [_item(2)]
    await queue.take(1, 1000)
    assert queue.lag == 7
    taking = asyncio.create_task(queue.take(1, 1000))
    await asyncio.sleep(0)
    # The next `take` ends the batch before it.
    assert queue.lag == 0
    taking.cancel()


async def test_lag_is_read_in_another_thread_when_objects_are_added_and_taken() -> None:
    queue = Workqueue(ManualClock())
    for number in range(10_000):
        queue.add(_item(number))

    def read() -> None:
        for _ in range(500):
            assert queue.lag == 0

    reading = asyncio.create_task(asyncio.to_thread(read))
    while not reading.done():
        for item in await queue.take(100, 1_000_000):
            queue.add(item)
        await asyncio.sleep(0)
    await reading


async def test_queue_overflows_when_its_objects_have_too_many_bytes() -> None:
    queue = Workqueue(ManualClock())
    for number in range(60):
        queue.add(_item(number, size=1_500_000))
    assert queue.has_overflowed.is_set()
    assert len(queue) == 44
    taken = await queue.take(100, 1 << 40)
    queue.has_overflowed.clear()
    queue.requeue(taken)
    assert not queue.has_overflowed.is_set()


async def test_take_is_bounded_and_returns_at_least_one_object() -> None:
    queue = Workqueue(ManualClock())
    for number in range(5):
        queue.add(_item(number))
    assert len(await queue.take(2, 1000)) == 2
    assert len(await queue.take(10, 15)) == 1
    assert len(await queue.take(10, 5)) == 1
    assert len(await queue.take(10, 1000)) == 1


async def test_take_waits_when_the_queue_is_empty() -> None:
    queue = Workqueue(ManualClock())
    taking = asyncio.create_task(queue.take(1, 1000))
    await asyncio.sleep(0)
    assert not taking.done()
    queue.add(_item(1))
    assert await taking == [_item(1)]


async def test_requeued_object_is_dropped_when_a_newer_version_was_added() -> None:
    queue = Workqueue(ManualClock())
    queue.add(_item(1, content=b"b"))
    queue.add(_item(2))
    taken = await queue.take(2, 1000)
    queue.add(_item(1, content=b"c"))
    queue.requeue(taken)
    assert await queue.take(10, 1000) == [_item(1, content=b"c"), _item(2)]

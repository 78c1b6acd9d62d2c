"""The status queue: final statuses first, objects once a second, all at a bounded rate."""

import uuid
from typing import Any

from workron_controller.jobs.status_writer import PendingStatus, StatusQueue


def _pending(number: int, *, is_final: bool = False, **status: Any) -> PendingStatus:
    return PendingStatus(uuid.UUID(int=number), status, is_final)


def _new_queue(rate: float = 10, burst: float = 100) -> StatusQueue:
    return StatusQueue(rate, burst)


def _taken(queue: StatusQueue, now: float) -> list[int]:
    taken = []
    while isinstance(found := queue.take(now), PendingStatus):
        taken.append(found.uid.int)
    return taken


def test_final_statuses_are_taken_first() -> None:
    queue = _new_queue()
    for pending in (
        _pending(1),
        _pending(2, is_final=True),
        _pending(3),
        _pending(4, is_final=True),
    ):
        queue.add(pending)
    assert _taken(queue, 0) == [2, 4, 1, 3]
    assert len(queue) == 0


def test_newest_status_is_taken_when_an_object_has_two() -> None:
    queue = _new_queue()
    queue.add(_pending(1, phase="Queued"))
    queue.add(_pending(1, phase="Running"))
    assert queue.take(0) == _pending(1, phase="Running")
    assert queue.take(0) == float("inf")


def test_final_status_replaces_an_earlier_one() -> None:
    queue = _new_queue()
    queue.add(_pending(1, phase="Running"))
    queue.add(_pending(1, is_final=True, phase="Succeeded"))
    assert queue.take(0) == _pending(1, is_final=True, phase="Succeeded")
    assert len(queue) == 0


def test_object_is_written_once_a_second_and_its_final_status_at_once() -> None:
    queue = _new_queue()
    queue.add(_pending(1))
    assert _taken(queue, 10) == [1]
    queue.add(_pending(1))
    queue.add(_pending(2))
    assert _taken(queue, 10.25) == [2]
    assert queue.take(10.25) == 0.75
    assert _taken(queue, 11) == [1]
    queue.add(_pending(1, is_final=True))
    assert _taken(queue, 11) == [1]


def test_rate_bounds_all_objects_together_after_a_burst() -> None:
    queue = _new_queue(rate=10, burst=3)
    for number in range(10):
        queue.add(_pending(number))
    assert _taken(queue, 0) == [0, 1, 2]
    assert queue.take(0) == 0.1
    assert _taken(queue, 0.5) == [3, 4, 5]
    assert len(_taken(queue, 100)) == 3


def test_nothing_is_taken_while_the_queue_is_paused() -> None:
    queue = _new_queue(rate=10, burst=10)
    queue.add(_pending(1))
    queue.pause(5, now=100)
    wait = queue.take(100)
    assert isinstance(wait, float)
    assert 5 <= wait <= 5.2
    assert _taken(queue, 104.9) == []
    assert _taken(queue, 105.2) == [1]


def test_requeued_status_is_dropped_when_the_object_has_a_newer_one() -> None:
    queue = _new_queue()
    queue.add(_pending(1, phase="Running"))
    queue.requeue(_pending(1, phase="Queued"))
    assert queue.take(0) == _pending(1, phase="Running")
    queue.requeue(_pending(1, phase="Running"))
    assert queue.take(2) == _pending(1, phase="Running")


def test_deferred_status_is_taken_when_it_is_due_and_others_at_once() -> None:
    queue = _new_queue()
    queue.defer(_pending(1, is_final=True), until=10)
    queue.defer(_pending(2), until=5)
    queue.add(_pending(3))
    assert (len(queue), queue.deferred) == (3, 2)
    assert _taken(queue, 1) == [3]
    assert queue.take(1) == 4
    assert _taken(queue, 5) == [2]
    assert _taken(queue, 9.9) == []
    assert _taken(queue, 10) == [1]
    assert (len(queue), queue.take(10)) == (0, float("inf"))


def test_deferred_status_has_the_newest_content_when_it_is_due() -> None:
    queue = _new_queue()
    queue.defer(_pending(1, phase="Queued"), until=10)
    queue.add(_pending(1, phase="Running"))
    queue.requeue(_pending(1, phase="Queued"))
    assert _taken(queue, 9) == []
    assert queue.take(10) == _pending(1, phase="Running")
    assert len(queue) == 0


def test_newer_status_waits_too_when_the_older_one_is_deferred() -> None:
    queue = _new_queue()
    queue.add(_pending(1, phase="Running"))
    queue.defer(_pending(1, phase="Queued"), until=10)
    assert _taken(queue, 9) == []
    assert queue.take(10) == _pending(1, phase="Running")


def test_final_status_does_not_wait_when_an_earlier_one_is_deferred() -> None:
    queue = _new_queue()
    queue.defer(_pending(1), until=10)
    queue.add(_pending(1, is_final=True))
    assert _taken(queue, 1) == [1]
    queue.defer(_pending(1, is_final=True), until=20)
    queue.add(_pending(1, is_final=True))
    # The time of the earlier status does not count.
    assert _taken(queue, 10) == []
    assert _taken(queue, 20) == [1]
    queue.add(_pending(2, is_final=True))
    queue.defer(_pending(2), until=90)
    assert _taken(queue, 30) == [2]


def test_deferred_statuses_are_removed_and_cleared() -> None:
    queue = _new_queue()
    queue.defer(_pending(1), until=10)
    queue.defer(_pending(2), until=10)
    queue.remove(uuid.UUID(int=1))
    assert queue.deferred == 1
    queue.clear()
    assert (len(queue), _taken(queue, 20)) == (0, [])


def test_removed_object_has_no_status_in_the_queue() -> None:
    queue = _new_queue()
    queue.add(_pending(1))
    queue.add(_pending(2, is_final=True))
    queue.remove(uuid.UUID(int=1))
    queue.remove(uuid.UUID(int=2))
    assert len(queue) == 0

"""The status_queue: ends first, no object too often, and all together no faster than they may."""

import uuid
from typing import Any

from workron_controller.jobs.status_writer import PendingStatus, StatusQueue


def _letter(number: int, *, is_end: bool = False, **said: Any) -> PendingStatus:
    return PendingStatus(uuid.UUID(int=number), said, is_end)


def _box(rate: float = 10, burst: float = 100) -> StatusQueue:
    return StatusQueue(rate, burst)


def _taken(box: StatusQueue, now: float) -> list[int]:
    taken = []
    while isinstance(found := box.take(now), PendingStatus):
        taken.append(found.uid.int)
    return taken


def test_ends_go_first() -> None:
    box = _box()
    for pending in (_letter(1), _letter(2, is_end=True), _letter(3), _letter(4, is_end=True)):
        box.add(pending)
    assert _taken(box, 0) == [2, 4, 1, 3]
    assert len(box) == 0


def test_only_the_newest_of_an_object_is_sent() -> None:
    box = _box()
    box.add(_letter(1, phase="Queued"))
    box.add(_letter(1, phase="Running"))
    assert box.take(0) == _letter(1, phase="Running")
    assert box.take(0) == float("inf")


def test_end_takes_the_place_of_what_came_before_it() -> None:
    box = _box()
    box.add(_letter(1, phase="Running"))
    box.add(_letter(1, is_end=True, phase="Succeeded"))
    assert box.take(0) == _letter(1, is_end=True, phase="Succeeded")
    assert len(box) == 0


def test_object_is_written_once_a_second_and_its_end_at_once() -> None:
    box = _box()
    box.add(_letter(1))
    assert _taken(box, 10) == [1]
    box.add(_letter(1))
    box.add(_letter(2))
    assert _taken(box, 10.25) == [2]
    assert box.take(10.25) == 0.75
    assert _taken(box, 11) == [1]
    box.add(_letter(1, is_end=True))
    assert _taken(box, 11) == [1]


def test_rate_is_that_of_all_objects_after_a_burst() -> None:
    box = _box(rate=10, burst=3)
    for number in range(10):
        box.add(_letter(number))
    assert _taken(box, 0) == [0, 1, 2]
    assert box.take(0) == 0.1
    assert _taken(box, 0.5) == [3, 4, 5]
    assert len(_taken(box, 100)) == 3


def test_nothing_is_sent_while_the_server_asks_for_patience() -> None:
    box = _box(rate=10, burst=10)
    box.add(_letter(1))
    box.pause(5, now=100)
    wait = box.take(100)
    assert isinstance(wait, float)
    assert 5 <= wait <= 5.2
    assert _taken(box, 104.9) == []
    assert _taken(box, 105.2) == [1]


def test_what_is_put_back_gives_way_to_what_is_newer() -> None:
    box = _box()
    box.add(_letter(1, phase="Running"))
    box.requeue(_letter(1, phase="Queued"))
    assert box.take(0) == _letter(1, phase="Running")
    box.requeue(_letter(1, phase="Running"))
    assert box.take(2) == _letter(1, phase="Running")


def test_what_was_refused_is_sent_when_its_time_has_come_and_others_at_once() -> None:
    box = _box()
    box.defer(_letter(1, is_end=True), until=10)
    box.defer(_letter(2), until=5)
    box.add(_letter(3))
    assert (len(box), box.deferred) == (3, 2)
    assert _taken(box, 1) == [3]
    assert box.take(1) == 4
    assert _taken(box, 5) == [2]
    assert _taken(box, 9.9) == []
    assert _taken(box, 10) == [1]
    assert (len(box), box.take(10)) == (0, float("inf"))


def test_what_was_refused_is_sent_in_its_newest_words_and_no_sooner() -> None:
    box = _box()
    box.defer(_letter(1, phase="Queued"), until=10)
    box.add(_letter(1, phase="Running"))
    box.requeue(_letter(1, phase="Queued"))
    assert _taken(box, 9) == []
    assert box.take(10) == _letter(1, phase="Running")
    assert len(box) == 0


def test_newer_words_that_came_while_the_older_were_refused_wait_as_well() -> None:
    box = _box()
    box.add(_letter(1, phase="Running"))
    box.defer(_letter(1, phase="Queued"), until=10)
    assert _taken(box, 9) == []
    assert box.take(10) == _letter(1, phase="Running")


def test_end_does_not_wait_for_what_was_refused_before_it() -> None:
    box = _box()
    box.defer(_letter(1), until=10)
    box.add(_letter(1, is_end=True))
    assert _taken(box, 1) == [1]
    box.defer(_letter(1, is_end=True), until=20)
    box.add(_letter(1, is_end=True))
    # The time of the first was another matter.
    assert _taken(box, 10) == []
    assert _taken(box, 20) == [1]
    box.add(_letter(2, is_end=True))
    box.defer(_letter(2), until=90)
    assert _taken(box, 30) == [2]


def test_what_is_held_is_dropped_and_cleared_like_all_else() -> None:
    box = _box()
    box.defer(_letter(1), until=10)
    box.defer(_letter(2), until=10)
    box.remove(uuid.UUID(int=1))
    assert box.deferred == 1
    box.clear()
    assert (len(box), _taken(box, 20)) == (0, [])


def test_dropped_object_says_nothing() -> None:
    box = _box()
    box.add(_letter(1))
    box.add(_letter(2, is_end=True))
    box.remove(uuid.UUID(int=1))
    box.remove(uuid.UUID(int=2))
    assert len(box) == 0

"""Slots that several agents share."""

from workron_worker.config import Slots


def _never() -> None:
    raise AssertionError("no agent waited for a slot")


def test_slots_are_taken_all_at_once() -> None:
    slots = Slots(3)
    assert (slots.take_all(_never), slots.take_all(lambda: None)) == (3, 0)


def test_waiter_is_woken_once_when_slots_are_free() -> None:
    slots, woken = Slots(1), []
    slots.take_all(_never)
    slots.take_all(lambda: woken.append("woken"))
    slots.give_back(1)
    slots.give_back(0)
    assert woken == ["woken"]


def test_waiter_is_not_woken_when_no_slot_is_returned() -> None:
    slots = Slots(1)
    slots.take_all(_never)
    slots.take_all(_never)
    slots.give_back(0)
    assert slots.take_all(_never) == 0

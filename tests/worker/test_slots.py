"""Slots that several agents share."""

from workron_worker.config import Slots


def _never() -> None:
    raise AssertionError("nobody was hungry")


def test_slots_are_taken_all_at_once_and_only_once() -> None:
    slots = Slots(3)
    assert (slots.take_all(_never), slots.take_all(lambda: None)) == (3, 0)


def test_who_found_none_is_woken_once_when_there_are_some() -> None:
    slots, woken = Slots(1), []
    slots.take_all(_never)
    slots.take_all(lambda: woken.append("hungry"))
    slots.give_back(1)
    slots.give_back(0)
    assert woken == ["hungry"]


def test_nobody_is_woken_when_nothing_is_given() -> None:
    slots = Slots(1)
    slots.take_all(_never)
    slots.take_all(_never)
    slots.give_back(0)
    assert slots.take_all(_never) == 0

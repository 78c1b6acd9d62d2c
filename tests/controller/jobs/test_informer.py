"""A watch that ends is begun again: soon if it had lasted, else later each time."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.controller.manual_clock import ManualClock
from workron_controller.jobs.informer import Informer
from workron_controller.jobs.object_handler import ObjectHandler
from workron_controller.kube.auth import ApiAccess


class _NoJitter(random.Random):
    def random(self) -> float:
        return 0.0


class _Over:
    """Stands in for the flag: notes for how long it is waited for, and is set in the end."""

    def __init__(self, pauses: int) -> None:
        self.waited: list[float] = []
        self._pauses = pauses

    def is_set(self) -> bool:
        return len(self.waited) >= self._pauses

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        return self.is_set()


async def _pauses(
    monkeypatch: pytest.MonkeyPatch,
    handler: ObjectHandler,
    access: ApiAccess,
    lasted: Sequence[float],
) -> list[float]:
    """Have watches last so long, and give the pauses after each."""
    time, over, ends = ManualClock(), _Over(len(lasted)), iter(lasted)

    async def operator(**_: Any) -> None:
        time.turn(next(ends))
        raise RuntimeError("the watch has ended")

    monkeypatch.setattr("kopf.operator", operator)
    informer = Informer(handler, access, (), time, _NoJitter())
    monkeypatch.setattr(informer, "_is_stopping", over)
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(informer._supervise, loop, None)
    return over.waited


async def test_watch_that_ends_at_once_is_begun_again_more_and_more_seldom(
    monkeypatch: pytest.MonkeyPatch, handler: ObjectHandler, access: ApiAccess
) -> None:
    waited = await _pauses(monkeypatch, handler, access, [0] * 8)
    assert waited == [1, 2, 4, 8, 16, 32, 60, 60]


async def test_watch_that_lasted_is_begun_again_soon(
    monkeypatch: pytest.MonkeyPatch, handler: ObjectHandler, access: ApiAccess
) -> None:
    waited = await _pauses(monkeypatch, handler, access, [0, 0, 59, 0, 600, 0, 60])
    assert waited == [1, 2, 4, 8, 1, 2, 1]

"""The pauses after which a watch is restarted."""

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


class StopFlag:
    """Records how long it is waited for, and is set after a number of pauses."""

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
    durations: Sequence[float],
) -> list[float]:
    """Return the pauses after watches of these durations in seconds."""
    time, stop, ends = ManualClock(), StopFlag(len(durations)), iter(durations)

    async def operator(**_: Any) -> None:
        time.advance(next(ends))
        raise RuntimeError("the watch has ended")

    monkeypatch.setattr("kopf.operator", operator)
    informer = Informer(handler, access, (), time, _NoJitter())
    monkeypatch.setattr(informer, "_is_stopping", stop)
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(informer._supervise, loop, None)
    return stop.waited


async def test_pauses_between_watches_grow_when_each_watch_ends_at_once(
    monkeypatch: pytest.MonkeyPatch, handler: ObjectHandler, access: ApiAccess
) -> None:
    waited = await _pauses(monkeypatch, handler, access, [0] * 8)
    assert waited == [1, 2, 4, 8, 16, 32, 60, 60]


async def test_pause_is_short_when_the_watch_before_lasted(
    monkeypatch: pytest.MonkeyPatch, handler: ObjectHandler, access: ApiAccess
) -> None:
    waited = await _pauses(monkeypatch, handler, access, [0, 0, 59, 0, 600, 0, 60])
    assert waited == [1, 2, 4, 8, 1, 2, 1]

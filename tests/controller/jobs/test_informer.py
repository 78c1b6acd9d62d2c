"""The pauses after which a watch is restarted."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Sequence
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


async def _ignore_the_first_cancellation() -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()


async def _run_with_stubborn_child() -> None:
    child = asyncio.create_task(_ignore_the_first_cancellation())
    try:
        await asyncio.Event().wait()
    finally:
        child.cancel()
        await asyncio.wait([child])


async def _supervise(
    monkeypatch: pytest.MonkeyPatch,
    handler: ObjectHandler,
    access: ApiAccess,
    durations: Sequence[float],
    *others: Callable[[], Coroutine[None, None, None]],
) -> list[float]:
    """Return the pauses after watches of these durations in seconds; `others` run beside them."""
    time, stop, ends = ManualClock(), StopFlag(len(durations)), iter(durations)

    async def watch() -> None:
        # The others start before the watch ends.
        for _ in range(3):
            await asyncio.sleep(0)
        time.advance(next(ends))
        raise RuntimeError("the watch has ended")

    async def spawn_tasks(**_: Any) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(task()) for task in (watch, *others)]

    monkeypatch.setattr("kopf.spawn_tasks", spawn_tasks)
    informer = Informer(handler, access, (), time, _NoJitter(), stop_seconds=0.01)
    monkeypatch.setattr(informer, "_is_stopping", stop)
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(informer._supervise, loop, None)
    return stop.waited


async def test_pauses_between_watches_grow_when_each_watch_ends_at_once(
    monkeypatch: pytest.MonkeyPatch, handler: ObjectHandler, access: ApiAccess
) -> None:
    waited = await _supervise(monkeypatch, handler, access, [0] * 8)
    assert waited == [1, 2, 4, 8, 16, 32, 60, 60]


async def test_pause_is_short_when_the_watch_before_lasted(
    monkeypatch: pytest.MonkeyPatch, handler: ObjectHandler, access: ApiAccess
) -> None:
    waited = await _supervise(monkeypatch, handler, access, [0, 0, 59, 0, 600, 0, 60])
    assert waited == [1, 2, 4, 8, 1, 2, 1]


async def test_watch_is_restarted_when_a_task_of_kopf_ignores_its_cancellation(
    monkeypatch: pytest.MonkeyPatch, handler: ObjectHandler, access: ApiAccess
) -> None:
    waited = await _supervise(monkeypatch, handler, access, [0, 0], _run_with_stubborn_child)
    assert waited == [1, 2]

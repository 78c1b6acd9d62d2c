"""A clock and a sleep that tests turn by hand."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from tests.controller.fake_api.notifier import Notifier


class ManualClock:
    """Stands still until somebody turns it; who sleeps wakes when it is turned far enough."""

    def __init__(self) -> None:
        self._passed = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []
        self._notifier = Notifier()
        self.slept: list[float] = []
        """For how long, each time."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float, /) -> None:
        self.slept.append(seconds)
        sleeper = (self._passed + seconds, asyncio.Event())
        self._sleepers.append(sleeper)
        self._notifier.notify()
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

    def turn(self, seconds: float) -> None:
        """Let time jump: who sleeps does not wake in between."""
        self._passed += seconds
        for due, bell in self._sleepers:
            if due <= self._passed:
                bell.set()

    async def asleep(self, count: int) -> None:
        """Return once so many sleep."""
        await self._notifier.wait_until(lambda: len(self._waiting()) == count)

    async def go_by(self, seconds: float) -> None:
        """Let time pass: each wakes when it is due, and all sleep again before it goes on."""
        crowd, end = len(self._waiting()), self._passed + seconds
        while (due := min((due for due, _ in self._waiting()), default=end)) < end:
            self.turn(due - self._passed)
            await self.asleep(crowd)
        self.turn(end - self._passed)
        await self.asleep(crowd)

    def _waiting(self) -> list[tuple[float, asyncio.Event]]:
        return [(due, bell) for due, bell in self._sleepers if not bell.is_set()]

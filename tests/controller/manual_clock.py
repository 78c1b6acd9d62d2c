"""A clock and a sleep that tests advance."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from tests.controller.fake_api.notifier import Notifier


class ManualClock:
    """Stands still until a test advances it; a sleep ends when its time has come."""

    def __init__(self) -> None:
        self._passed = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []
        self._notifier = Notifier()
        self.slept: list[float] = []
        """The durations of all sleeps."""

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

    def advance(self, seconds: float) -> None:
        """Let time jump: sleepers do not wake in between."""
        self._passed += seconds
        for due, is_due in self._sleepers:
            if due <= self._passed:
                is_due.set()

    async def wait_for_sleepers(self, count: int) -> None:
        """Wait until this number of tasks sleep."""
        await self._notifier.wait_until(lambda: len(self._waiting()) == count)

    async def run_for(self, seconds: float) -> None:
        """Let time pass: each sleeper wakes when it is due, and sleeps again before it goes on."""
        count, end = len(self._waiting()), self._passed + seconds
        while (due := min((due for due, _ in self._waiting()), default=end)) < end:
            self.advance(due - self._passed)
            await self.wait_for_sleepers(count)
        self.advance(end - self._passed)
        await self.wait_for_sleepers(count)

    def _waiting(self) -> list[tuple[float, asyncio.Event]]:
        return [(due, is_due) for due, is_due in self._sleepers if not is_due.is_set()]

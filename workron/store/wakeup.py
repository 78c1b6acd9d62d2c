"""Waking those in this process who wait for work. Called by the stores of both dialects."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from weakref import WeakKeyDictionary


class Wakeup:
    """Wakes every waiting task, and remembers for those who are about to wait."""

    def __init__(self) -> None:
        self._events: WeakKeyDictionary[asyncio.Task[Any], asyncio.Event] = WeakKeyDictionary()

    def wake(self) -> None:
        """Wake all; a task that is not waiting just now will not wait the next time."""
        for event in self._events.values():
            event.set()

    async def wait(self, timeout_seconds: float) -> None:
        """Return when woken since this task's last wait, or after the timeout."""
        task = asyncio.current_task()
        assert task is not None, "only a task can wait"
        event = self._events.setdefault(task, asyncio.Event())
        with contextlib.suppress(TimeoutError):
            # Not `wait_for`: before Python 3.12 it can swallow a cancellation.
            async with asyncio.timeout(timeout_seconds):
                await event.wait()
        event.clear()

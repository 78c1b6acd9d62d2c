"""Waking tasks of this process that wait for work."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from workron.core.ids import SessionKey


class _WaiterEvent(asyncio.Event):
    """The event of one task, and the worker on whose behalf it waits."""

    worker: SessionKey | None = None


class Wakeup:
    """Wakes all waiting tasks. A task between two waits returns from the next one at once."""

    def __init__(self) -> None:
        self._waiters: WeakKeyDictionary[asyncio.Task[Any], _WaiterEvent] = WeakKeyDictionary()

    def wake(self, worker: SessionKey | None = None) -> None:
        """Wake all tasks but those of `worker`, which caused this and knows of it."""
        for waiter in self._waiters.values():
            if worker is None or waiter.worker != worker:
                waiter.set()

    async def wait(self, timeout_seconds: float, worker: SessionKey | None = None) -> None:
        """Return when woken since this task's last wait, or after the timeout."""
        task = asyncio.current_task()
        assert task is not None, "only a task can wait"
        event = self._waiters.setdefault(task, _WaiterEvent())
        event.worker = worker
        with contextlib.suppress(TimeoutError):
            # Not `wait_for`: before Python 3.12 it can swallow a cancellation.
            async with asyncio.timeout(timeout_seconds):
                await event.wait()
        event.clear()

"""Waking those in this process who wait for work. Called by the stores of both dialects."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from workron.core.ids import SessionKey


class _Sleeper(asyncio.Event):
    """One task, and the worker for which it waits, if it does so for one."""

    worker: SessionKey | None = None


class Wakeup:
    """Wakes every waiting task, and remembers for those who are about to wait."""

    def __init__(self) -> None:
        self._sleepers: WeakKeyDictionary[asyncio.Task[Any], _Sleeper] = WeakKeyDictionary()

    def wake(self, doer: SessionKey | None = None) -> None:
        """Wake all; a task that is not waiting just now will not wait the next time.

        A worker that did itself what others are woken for knows of it.
        """
        for sleeper in self._sleepers.values():
            if doer is None or sleeper.worker != doer:
                sleeper.set()

    async def wait(self, timeout_seconds: float, worker: SessionKey | None = None) -> None:
        """Return when woken since this task's last wait, or after the timeout."""
        task = asyncio.current_task()
        assert task is not None, "only a task can wait"
        event = self._sleepers.setdefault(task, _Sleeper())
        event.worker = worker
        with contextlib.suppress(TimeoutError):
            # Not `wait_for`: before Python 3.12 it can swallow a cancellation.
            async with asyncio.timeout(timeout_seconds):
                await event.wait()
        event.clear()

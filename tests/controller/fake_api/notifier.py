"""Waits for a condition that another task makes true, without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Notifier:
    """Wakes the tasks that wait for a condition whenever the state may have changed."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Have all waiting tasks check their condition again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_until(self, condition: Callable[[], object]) -> None:
        """Return once the condition is true."""
        while not condition():
            await self._changed.wait()

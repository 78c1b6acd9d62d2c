"""Waits for something to become true, without status_sync at a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class News:
    """Rung by whoever changes something; heard by all who wait for what that may have changed."""

    def __init__(self) -> None:
        self._bell = asyncio.Event()

    def ring(self) -> None:
        """Let all who wait look again."""
        self._bell.set()
        self._bell = asyncio.Event()

    async def until(self, is_so: Callable[[], object]) -> None:
        """Return once it is so."""
        while not is_so():
            await self._bell.wait()

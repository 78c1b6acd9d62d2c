"""The coalesced NOTIFY: the first ring at once, those that follow together, none in a hot commit.

A ring carries nothing and proves nothing; who hears it looks for himself, and polls besides.
Called by `store`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from workron.core import errors
from workron.store.postgres import faults

if TYPE_CHECKING:
    from workron.store.postgres.database import Database
    from workron.store.wakeup import Wakeup

_CHANNEL: Final = "workron"
_QUIET_SECONDS: Final = 0.005


class Bell:
    """Rings for other processes, and hears them where the connection allows it."""

    def __init__(self, database: Database, wakeup: Wakeup) -> None:
        self._database = database
        self._wakeup = wakeup
        self._ringer: asyncio.Task[None] | None = None
        self._is_wanted = False
        self._listener: asyncpg.Connection | None = None

    async def listen(self) -> None:
        """Hear others, on a connection of its own; without one, polling does."""
        with contextlib.suppress(*faults.DRIVER):
            self._listener = await asyncpg.connect(self._database.url, timeout=10)
            await self._listener.add_listener(_CHANNEL, self._hear)

    def _hear(self, *_: Any) -> None:
        self._wakeup.wake()

    def ring(self) -> None:
        """Wake those in this process now, and other processes soon."""
        self._wakeup.wake()
        self._is_wanted = True
        if self._ringer is None or self._ringer.done():
            self._ringer = asyncio.create_task(self._keep_ringing())

    async def _keep_ringing(self) -> None:
        while self._is_wanted:
            self._is_wanted = False
            # Whoever is not woken finds the work by polling.
            with contextlib.suppress(errors.StoreError):
                await self._database.fetch("SELECT pg_notify($1, '')", _CHANNEL)
            await asyncio.sleep(_QUIET_SECONDS)

    async def close(self) -> None:
        """Stop ringing and hearing."""
        if self._ringer is not None:
            self._ringer.cancel()
            await asyncio.wait([self._ringer])
        if self._listener is not None:
            with contextlib.suppress(*faults.DRIVER):
                await self._listener.close(timeout=5)

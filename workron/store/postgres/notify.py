"""The coalesced NOTIFY: the first ring at once, those that follow together, none in a hot commit.

A commit that rings holds up all others that do; so a submission carries its ring in its own commit
only where this process has not rung just now, and ends are rung for behind theirs.

A ring carries nothing and proves nothing; who hears it looks for himself, and polls besides. Behind
a pooler one only rings: a LISTEN would stay on a connection that another client is given next.
Called by `store`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, Protocol

import asyncpg

from workron.core import errors
from workron.store.postgres import driver_errors

if TYPE_CHECKING:
    from workron.core.ids import SessionKey
    from workron.store.postgres.pool import ConnectionPool
    from workron.store.wakeup import Wakeup


_CHANNEL: Final = "workron"
NOTIFY: Final = f"pg_notify('{_CHANNEL}', '')"
_QUIET_SECONDS: Final = 0.025
"""A ring is a commit of its own; who is woken that often has no need to be woken more often."""
_AGAIN_SECONDS: Final = 1.0
_LAST_RING_SECONDS: Final = 1.0


class Ring(Protocol):
    """Wakes all who wait for work, but for the worker that did itself what there is to know."""

    def __call__(self, doer: SessionKey | None = None) -> None:
        """Wake those in this process now, and other processes soon."""


class Notifier:
    """Rings for other processes, and hears them where the connection allows it."""

    def __init__(self, database: ConnectionPool, wakeup: Wakeup) -> None:
        self._database = database
        self._wakeup = wakeup
        self._ringer: asyncio.Task[None] | None = None
        self._is_wanted = False
        self._listener: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Hear others, on a connection of its own; where there can be none, polling does."""
        has_tried = asyncio.Event()
        self._listener = asyncio.create_task(self._keep_listening(has_tried))
        await has_tried.wait()

    async def _keep_listening(self, has_tried: asyncio.Event) -> None:
        is_pooled = False
        while not is_pooled:
            with contextlib.suppress(*driver_errors.DRIVER):
                is_pooled = await self._listen_until_lost(has_tried)
            has_tried.set()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _listen_until_lost(self, has_tried: asyncio.Event) -> bool:
        """Hear others as long as the connection lasts; True, and at once, if nobody may listen."""
        lost = asyncio.Event()
        connection = await asyncpg.connect(self._database.url, timeout=10, command_timeout=10)
        try:
            if await _is_pooled(connection):
                return True
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(_CHANNEL, self._hear)
            has_tried.set()
            # What was rung while nobody listened is not rung again.
            self._wakeup.wake()
            await lost.wait()
        finally:
            connection.terminate()
        return False

    def _hear(self, *_: Any) -> None:
        self._wakeup.wake()

    @property
    def is_resting(self) -> bool:
        """Whether it has not rung just now, so that a commit may carry the next ring."""
        return self._ringer is None or self._ringer.done()

    def ring(self, doer: SessionKey | None = None) -> None:
        """Wake those in this process now, and other processes soon."""
        self._is_wanted = True
        self.has_rung(doer)

    def has_rung(self, doer: SessionKey | None = None) -> None:
        """Wake those in this process now; a commit has just rung for other processes."""
        self._wakeup.wake(doer)
        if self.is_resting:
            self._ringer = asyncio.create_task(self._keep_ringing())

    async def _keep_ringing(self) -> None:
        if not self._is_wanted:
            await asyncio.sleep(_QUIET_SECONDS)
        while self._is_wanted:
            self._is_wanted = False
            # Whoever is not woken finds the work by polling.
            with contextlib.suppress(errors.StoreError):
                await self._database.fetch(f"SELECT {NOTIFY}")
            await asyncio.sleep(_QUIET_SECONDS)

    async def close(self) -> None:
        """Stop hearing, and ringing after what was asked for; a short-lived caller is heard too."""
        if self._ringer is not None:
            await asyncio.wait([self._ringer], timeout=_LAST_RING_SECONDS)
        tasks = [task for task in (self._ringer, self._listener) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _is_pooled(connection: asyncpg.Connection) -> bool:
    """Whether who greeted us is not who answers: a pooler greets with a number of its own."""
    answering = await connection.fetchval("SELECT pg_backend_pid()")
    return bool(answering != connection.get_server_pid())

"""Waking up other processes with NOTIFY, at most once per 25 ms and process.

The first notification is sent at once and later ones are combined. Commits with a NOTIFY are
serialized by PostgreSQL, so ends are announced after their commit; only a submission carries its
NOTIFY itself, if this process has sent none just now.

A notification carries no data and guarantees nothing: a listener looks for work, and polls as
well. Behind a transaction pooler a process sends but does not listen, because LISTEN belongs to a
server connection that the pooler gives to another client.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from workron.core import errors
from workron.store.postgres import driver_errors

if TYPE_CHECKING:
    from workron.core.ids import SessionKey
    from workron.store.postgres.pool import ConnectionPool
    from workron.store.wakeup import Wakeup


_CHANNEL: Final = "workron"
NOTIFY: Final = f"pg_notify('{_CHANNEL}', '')"
_INTERVAL_SECONDS: Final = 0.025
"""A notification is a commit of its own; no worker needs to be woken more often."""
_RECONNECT_SECONDS: Final = 1.0
_LAST_NOTIFY_SECONDS: Final = 1.0


class Notifier:
    """Sends notifications, and listens for those of other processes if the connection allows it."""

    def __init__(
        self,
        database: ConnectionPool,
        wakeup: Wakeup,
        *,
        interval_seconds: float = _INTERVAL_SECONDS,
        reconnect_seconds: float = _RECONNECT_SECONDS,
        last_seconds: float = _LAST_NOTIFY_SECONDS,
    ) -> None:
        """Create it; closing waits `last_seconds` for a pending notification."""
        self._database = database
        self._wakeup = wakeup
        self._interval_seconds = interval_seconds
        self._reconnect_seconds = reconnect_seconds
        self._last_seconds = last_seconds
        self._sender: asyncio.Task[None] | None = None
        self._is_pending = False
        self._listener: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Start to listen on a connection of its own; returns after the first attempt."""
        has_tried = asyncio.Event()
        self._listener = asyncio.create_task(self._keep_listening(has_tried))
        await has_tried.wait()

    async def _keep_listening(self, has_tried: asyncio.Event) -> None:
        is_pooled = False
        while not is_pooled:
            with contextlib.suppress(*driver_errors.DRIVER):
                is_pooled = await self._listen_until_lost(has_tried)
            has_tried.set()
            await asyncio.sleep(self._reconnect_seconds)

    async def _listen_until_lost(self, has_tried: asyncio.Event) -> bool:
        """Listen until the connection is lost; return True at once behind a transaction pooler."""
        lost = asyncio.Event()
        connection = await asyncpg.connect(self._database.url, timeout=10, command_timeout=10)
        try:
            # The process id of a transaction pooler's greeting is not that of the server.
            if await connection.fetchval("SELECT pg_backend_pid()") != connection.get_server_pid():
                return True
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(_CHANNEL, self._on_notification)
            has_tried.set()
            # Notifications that were sent while no connection listened are lost.
            self._wakeup.wake()
            await lost.wait()
        finally:
            connection.terminate()
        return False

    def _on_notification(self, *_: Any) -> None:
        self._wakeup.wake()

    @property
    def is_idle(self) -> bool:
        """Whether no notification was sent just now, so that a commit may carry the next one."""
        return self._sender is None or self._sender.done()

    def notify(self, worker: SessionKey | None = None) -> None:
        """Wake tasks of this process now, except those of `worker`, and other processes soon."""
        self._is_pending = True
        self.after_notify(worker)

    def after_notify(self, worker: SessionKey | None = None) -> None:
        """Wake tasks of this process now; a commit has just notified other processes."""
        self._wakeup.wake(worker)
        if self.is_idle:
            self._sender = asyncio.create_task(self._send())

    async def _send(self) -> None:
        if not self._is_pending:
            await asyncio.sleep(self._interval_seconds)
        while self._is_pending:
            self._is_pending = False
            # A process that is not woken finds the work by polling.
            with contextlib.suppress(errors.StoreError):
                await self._database.fetch(f"SELECT {NOTIFY}")
            await asyncio.sleep(self._interval_seconds)

    async def close(self) -> None:
        """Stop listening, after a pending notification was sent."""
        if self._sender is not None:
            await asyncio.wait([self._sender], timeout=self._last_seconds)
        tasks = [task for task in (self._sender, self._listener) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

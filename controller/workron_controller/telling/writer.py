"""Writes statuses into objects, some at a time: the whole status each time, and nothing else.

The uid goes with it, so that it can never meet another object that was given the same name.
What the API server cannot take now is tried again with what the object has to say by then; what it
refuses for good, too, but of that object alone, and more and more seldom. What is refused is who
writes, and where, mostly; so another thing to say is no reason to try sooner, unless it is the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from workron_controller.api import errors
from workron_controller.backoff import Backoff
from workron_controller.telling import notices, status
from workron_controller.telling.outbox import Letter

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from workron.core.ports import Clock
    from workron_controller.objects import Objects, Seen
    from workron_controller.telling.notices import Notice
    from workron_controller.telling.outbox import Outbox
    from workron_controller.telling.status import Status

_AT_ONCE: Final = 16
_PAUSE_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 300.0
_OF_ALL: Final = (errors.PassingError, errors.UnauthorizedError, errors.AccessError)
"""What is no object's own: the server is in trouble, or does not know who we are."""

_log = structlog.get_logger(__name__)


class Send(Protocol):
    """Writes one status."""

    async def __call__(self, seen: Seen, status: Status, /) -> None:
        """Write it, or raise one of `api.errors`."""


class Writer:
    """Sends what is in the outbox for as long as it runs."""

    def __init__(
        self,
        send: Send,
        outbox: Outbox,
        objects: Objects,
        clock: Clock,
        leave: Callable[[Notice], None],
    ) -> None:
        self._send = send
        self._leave = leave
        self._outbox = outbox
        self._objects = objects
        self._clock = clock
        self._has_news = asyncio.Event()
        self._refused: dict[UUID, Backoff] = {}
        self.written = 0
        self.delayed = 0

    def put(self, letter: Letter) -> None:
        """Have an object say this, and nothing where it says so already."""
        seen = self._objects.get(letter.uid)
        if seen is None or not status.differs(letter.status, seen.said):
            self._settle(letter.uid)
            self._outbox.drop(letter.uid)
            return
        self._outbox.put(letter)
        if seen.late_since is None and not self._outbox.is_held(letter.uid):
            seen.late_since = self._clock.monotonic()
        self._has_news.set()

    @property
    def lag(self) -> float:
        """Tell for how long the object has waited that waits longest; the refused left aside."""
        times = [seen.late_since for seen in self._objects if seen.late_since is not None]
        return self._clock.monotonic() - min(times) if times else 0.0

    async def run(self) -> None:
        """Go on for ever; what is on its way when this is cancelled is given up."""
        # Of this run alone: what is cancelled while it waits for a letter gives nothing back.
        room = asyncio.Semaphore(_AT_ONCE)
        self._refused.clear()
        for seen in self._objects:
            # Others have told since.
            seen.late_since = None
        async with asyncio.TaskGroup() as sending:
            while True:
                await room.acquire()
                letter = await self._next()
                sent = sending.create_task(self.deliver(letter))
                sent.add_done_callback(lambda _: room.release())

    async def _next(self) -> Letter:
        while True:
            self._has_news.clear()
            found = self._outbox.take(self._clock.monotonic())
            if isinstance(found, Letter):
                return found
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if found == float("inf") else found):
                    await self._has_news.wait()

    async def deliver(self, letter: Letter) -> None:
        """Write one status, or see to it that it is tried again where that is of use."""
        seen = self._objects.get(letter.uid)
        if seen is None:
            self._settle(letter.uid)
            return
        # A watch may bring what we write before we know that it was written.
        before, looked = seen.said, seen.looked
        try:
            await self._send(seen, letter.status)
        except _OF_ALL as trouble:
            self._put_off(letter, trouble)
        except errors.ApiError as refused:
            self._hold(letter, seen, refused)
        else:
            self._settle(letter.uid)
            if (notice := notices.of_object(seen, before, letter.status)) is not None:
                self._leave(notice)
            seen.told = letter.status
            if seen.looked != looked:
                # It came to stand otherwise while that was on its way, if only for a moment.
                seen.looked = None
            self.written += 1

    def _settle(self, uid: UUID) -> None:
        """Take note that nothing is in the way of an object, or that it is gone."""
        self._refused.pop(uid, None)
        if (seen := self._objects.get(uid)) is not None:
            seen.late_since = None

    def _hold(self, letter: Letter, seen: Seen, refused: errors.ApiError) -> None:
        """Leave it for a while: it is gone, or has a namesake, or we may not write it."""
        seen.late_since = None
        wait = self._refused.setdefault(letter.uid, Backoff(_PAUSE_SECONDS, _LONGEST_SECONDS))
        seconds = wait.more()
        self._outbox.hold(letter, self._clock.monotonic() + seconds)
        self._has_news.set()
        about = {"kind": seen.kind, "namespace": seen.namespace, "name": seen.name}
        _log.warning("status is not written", error=str(refused), again_in=seconds, **about)

    def _put_off(self, letter: Letter, trouble: errors.ApiError) -> None:
        after = trouble.after if isinstance(trouble, errors.PassingError) else None
        seconds = after or _PAUSE_SECONDS
        self.delayed += 1
        self._outbox.put_back(letter)
        self._outbox.put_off(seconds, self._clock.monotonic())
        self._has_news.set()
        _log.warning("statuses have to wait", seconds=seconds, error=str(trouble))

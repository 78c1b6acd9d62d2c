"""Writes statuses into objects, some at a time: the whole status each time, and nothing else.

The uid goes with it, so that it can never meet another object that was given the same name.
What the API server cannot take now is tried again with what the object has to say by then; what it
refuses for good, too, but of that object alone, and more and more seldom. What is refused is who
writes, and where, mostly; so another thing to say is no reason to try sooner, unless it is the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from workron_controller.jobs import status
from workron_controller.kube import errors, events
from workron_controller.kube.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from workron.core.clock import Clock
    from workron_controller.jobs.cache import CachedObject, ObjectCache
    from workron_controller.jobs.status import Status
    from workron_controller.kube.events import KubernetesEvent


_APART_SECONDS: Final = 1.0
"""Between two writes to one object, unless it has ended."""


@dataclass(frozen=True, slots=True)
class PendingStatus:
    """What one object is to say."""

    uid: UUID
    status: Status
    is_end: bool


class StatusQueue:
    """Letters that are not sent yet."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._counted_at = 0.0
        self._ends: OrderedDict[UUID, PendingStatus] = OrderedDict()
        self._others: OrderedDict[UUID, PendingStatus] = OrderedDict()
        self._not_before: OrderedDict[UUID, float] = OrderedDict()
        self._held: dict[UUID, tuple[float, PendingStatus]] = {}
        self._due: list[tuple[float, UUID]] = []
        """A heap of those that are held, and of some that are not any more."""

    def __len__(self) -> int:
        return len(self._ends) + len(self._others) + len(self._held)

    @property
    def held(self) -> int:
        """Count those that were refused, and are tried again at times."""
        return len(self._held)

    def is_held(self, uid: UUID) -> bool:
        """Tell whether an object has to wait, as what it had to say was refused."""
        return uid in self._held

    def put(self, letter: PendingStatus) -> None:
        """Have an object say this, and not what it was to say before."""
        until, held = self._held.get(letter.uid, (0.0, None))
        if held is not None and (held.is_end or not letter.is_end):
            self._held[letter.uid] = until, letter
            return
        # An end comes once, and is waited for: what was refused before it may be taken now.
        self._held.pop(letter.uid, None)
        was = self._ends.pop(letter.uid, None)
        if letter.is_end or was is not None:
            self._others.pop(letter.uid, None)
            self._ends[letter.uid] = letter
        else:
            self._others[letter.uid] = letter

    def put_back(self, letter: PendingStatus) -> None:
        """Have it sent again, unless the object has something newer to say."""
        if not self._has(letter.uid):
            self.put(letter)

    def hold(self, letter: PendingStatus, until: float) -> None:
        """Send this again no sooner than then, or what the object has to say by then."""
        newer = self._ends.get(letter.uid) or self._others.get(letter.uid)
        if newer is not None and newer.is_end and not letter.is_end:
            return
        self.drop(letter.uid)
        self._held[letter.uid] = until, newer or letter
        heapq.heappush(self._due, (until, letter.uid))

    def drop(self, uid: UUID) -> None:
        """Forget an object."""
        for waiting in (self._ends, self._others, self._held, self._not_before):
            waiting.pop(uid, None)

    def clear(self) -> None:
        """Forget all: another replica has told since."""
        for waiting in (self._ends, self._others, self._held, self._due):
            waiting.clear()

    def take(self, now: float) -> PendingStatus | float:
        """Give the letter that may be sent now, or say for how long there is none."""
        self._tokens = min(self._burst, self._tokens + (now - self._counted_at) * self._rate)
        self._counted_at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._let_go(now)
        letter = self._first(now)
        if isinstance(letter, PendingStatus):
            self._tokens -= 1
            self._not_before[letter.uid] = now + _APART_SECONDS
            self._not_before.move_to_end(letter.uid)
        return letter

    def put_off(self, seconds: float, now: float) -> None:
        """Send nothing for so long: the API server asked for that."""
        self._counted_at = max(self._counted_at, now + seconds)
        self._tokens = min(self._tokens, 0)

    def _has(self, uid: UUID) -> bool:
        return uid in self._ends or uid in self._others or uid in self._held

    def _let_go(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            until, uid = heapq.heappop(self._due)
            if uid in self._held and self._held[uid][0] == until:
                self.put(self._held.pop(uid)[1])

    def _first(self, now: float) -> PendingStatus | float:
        while self._not_before and next(iter(self._not_before.values())) <= now:
            self._not_before.popitem(last=False)
        if self._ends:
            return self._ends.popitem(last=False)[1]
        soonest = self._due[0][0] if self._due else float("inf")
        for uid in self._others:
            at = self._not_before.get(uid, 0.0)
            if at <= now:
                return self._others.pop(uid)
            soonest = min(soonest, at)
        return soonest - now


_AT_ONCE: Final = 16
_PAUSE_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 300.0
_OF_ALL: Final = (errors.TransientError, errors.UnauthorizedError, errors.AccessError)
"""What is no object's own: the server is in trouble, or does not know who we are."""

_log = structlog.get_logger(__name__)


class SendStatus(Protocol):
    """Writes one status."""

    async def __call__(self, seen: CachedObject, status: Status, /) -> None:
        """Write it, or raise one of `api.errors`."""


class StatusWriter:
    """Sends what is in the outbox for as long as it runs."""

    def __init__(
        self,
        send: SendStatus,
        outbox: StatusQueue,
        objects: ObjectCache,
        clock: Clock,
        leave: Callable[[KubernetesEvent], None],
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

    def put(self, letter: PendingStatus) -> None:
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

    async def _next(self) -> PendingStatus:
        while True:
            self._has_news.clear()
            found = self._outbox.take(self._clock.monotonic())
            if isinstance(found, PendingStatus):
                return found
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if found == float("inf") else found):
                    await self._has_news.wait()

    async def deliver(self, letter: PendingStatus) -> None:
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
            if (notice := events.event_of_status_change(seen, before, letter.status)) is not None:
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

    def _hold(self, letter: PendingStatus, seen: CachedObject, refused: errors.ApiError) -> None:
        """Leave it for a while: it is gone, or has a namesake, or we may not write it."""
        seen.late_since = None
        wait = self._refused.setdefault(letter.uid, Backoff(_PAUSE_SECONDS, _LONGEST_SECONDS))
        seconds = wait.more()
        self._outbox.hold(letter, self._clock.monotonic() + seconds)
        self._has_news.set()
        about = {"kind": seen.kind, "namespace": seen.namespace, "name": seen.name}
        _log.warning("status is not written", error=str(refused), again_in=seconds, **about)

    def _put_off(self, letter: PendingStatus, trouble: errors.ApiError) -> None:
        after = trouble.after if isinstance(trouble, errors.TransientError) else None
        seconds = after or _PAUSE_SECONDS
        self.delayed += 1
        self._outbox.put_back(letter)
        self._outbox.put_off(seconds, self._clock.monotonic())
        self._has_news.set()
        _log.warning("statuses have to wait", seconds=seconds, error=str(trouble))

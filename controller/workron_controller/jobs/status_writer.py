"""The status writer: writes computed statuses to the API server, at a bounded rate.

Each write replaces the whole status and tests the uid, so that it never reaches a new object of the
same name. `StatusQueue` holds at most one status of each object and decides which is next:

- final statuses come first; any other object is written at most once a second;
- a status that the API server refuses for a reason of this object alone is *deferred*: it is
  retried after 1 s, 2 s, 4 s ... up to 5 minutes, with the content that the object has by then. A
  newer status does not end the wait, except the final one: usually the permission is refused, not
  the content;
- while the API server is unavailable or refuses everything, the whole queue is *paused*.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import structlog
from prometheus_client import Counter

from workron.core.clock import Clock
from workron.retry import RetryBackoff
from workron_controller.jobs.cache import CachedObject, ObjectCache
from workron_controller.kube import conditions, errors, events
from workron_controller.kube.events import KubernetesEvent

_MIN_INTERVAL: Final = 1.0
"""Seconds between two writes to one object, except for the final status."""
_MAX_IN_FLIGHT: Final = 16
RETRY_SECONDS: Final = 1.0
_LONGEST_PAUSE: Final = 300.0
_SERVER_ERRORS: Final = (errors.TransientApiError, errors.UnauthorizedError, errors.AccessError)
"""Errors that are not about one object: the server has a problem, or does not know us."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PendingStatus:
    """A status to write."""

    uid: UUID
    status: Mapping[str, Any]
    is_final: bool


class StatusQueue:
    """The statuses that are not written yet; `rate` is in writes per second."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._refilled_at = 0.0
        self._final: OrderedDict[UUID, PendingStatus] = OrderedDict()
        self._others: OrderedDict[UUID, PendingStatus] = OrderedDict()
        self._not_before: OrderedDict[UUID, float] = OrderedDict()
        self._deferred: dict[UUID, tuple[float, PendingStatus]] = {}
        self._due: list[tuple[float, UUID]] = []
        """A heap of deferred objects by time; an entry is outdated if `_deferred` differs."""

    def __len__(self) -> int:
        return len(self._final) + len(self._others) + len(self._deferred)

    @property
    def deferred(self) -> int:
        """The number of deferred statuses."""
        return len(self._deferred)

    def is_deferred(self, uid: UUID) -> bool:
        """Return whether the status of an object is deferred."""
        return uid in self._deferred

    def add(self, pending: PendingStatus) -> None:
        """Add a status in place of an older one of the object."""
        until, deferred = self._deferred.get(pending.uid, (0.0, None))
        if deferred is not None and (deferred.is_final or not pending.is_final):
            self._deferred[pending.uid] = until, pending
            return
        self._deferred.pop(pending.uid, None)
        was_final = self._final.pop(pending.uid, None) is not None
        if pending.is_final or was_final:
            self._others.pop(pending.uid, None)
            self._final[pending.uid] = pending
        else:
            self._others[pending.uid] = pending

    def requeue(self, pending: PendingStatus) -> None:
        """Add a status again, unless the object has a newer one."""
        if not any(pending.uid in one for one in (self._final, self._others, self._deferred)):
            self.add(pending)

    def defer(self, pending: PendingStatus, until: float) -> None:
        """Add a status, or the newer one that the object has, to be written at that time."""
        newer = self._final.get(pending.uid) or self._others.get(pending.uid)
        if newer is not None and newer.is_final and not pending.is_final:
            return
        self.remove(pending.uid)
        self._deferred[pending.uid] = until, newer or pending
        heapq.heappush(self._due, (until, pending.uid))

    def remove(self, uid: UUID) -> None:
        """Remove the status of an object."""
        for waiting in (self._final, self._others, self._deferred, self._not_before):
            waiting.pop(uid, None)

    def clear(self) -> None:
        """Remove everything."""
        for waiting in (self._final, self._others, self._deferred, self._due):
            waiting.clear()

    def take(self, now: float) -> PendingStatus | float:
        """Remove and return the next status, or the seconds until there may be one."""
        self._tokens = min(self._burst, self._tokens + (now - self._refilled_at) * self._rate)
        self._refilled_at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._undefer(now)
        pending = self._next(now)
        if isinstance(pending, PendingStatus):
            self._tokens -= 1
            self._not_before[pending.uid] = now + _MIN_INTERVAL
            self._not_before.move_to_end(pending.uid)
        return pending

    def pause(self, seconds: float, now: float) -> None:
        """Return nothing from `take` for this long."""
        self._refilled_at = max(self._refilled_at, now + seconds)
        self._tokens = min(self._tokens, 0)

    def _undefer(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            until, uid = heapq.heappop(self._due)
            if uid in self._deferred and self._deferred[uid][0] == until:
                self.add(self._deferred.pop(uid)[1])

    def _next(self, now: float) -> PendingStatus | float:
        while self._not_before and next(iter(self._not_before.values())) <= now:
            self._not_before.popitem(last=False)
        if self._final:
            return self._final.popitem(last=False)[1]
        soonest = self._due[0][0] if self._due else float("inf")
        for uid in self._others:
            not_before = self._not_before.get(uid, 0.0)
            if not_before <= now:
                return self._others.pop(uid)
            soonest = min(soonest, not_before)
        return soonest - now


class StatusWriter:
    """Writes the statuses of a queue; `send` writes one or raises ApiError."""

    def __init__(
        self,
        send: Callable[[CachedObject, Mapping[str, Any]], Awaitable[None]],
        queue: StatusQueue,
        objects: ObjectCache,
        clock: Clock,
        record_event: Callable[[KubernetesEvent], None],
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._send = send
        self._record_event = record_event
        self._queue = queue
        self._objects = objects
        self._clock = clock
        self._backoff = RetryBackoff(retry_seconds, _LONGEST_PAUSE)
        self._has_changed = asyncio.Event()
        self._failures: defaultdict[UUID, int] = defaultdict(int)
        self.written = Counter(
            "workron_controller_status_writes", "Statuses written.", registry=None
        )
        self.retried = Counter(
            "workron_controller_status_retries",
            "Writes of statuses that failed and are retried.",
            registry=None,
        )

    @property
    def lag(self) -> float:
        """The seconds for which the oldest status waits, deferred ones aside."""
        times = [one.pending_since for one in self._objects if one.pending_since is not None]
        return self._clock.monotonic() - min(times) if times else 0.0

    def enqueue(self, pending: PendingStatus) -> None:
        """Have a status written, unless the object has it already."""
        cached = self._objects.get(pending.uid)
        if cached is None or not conditions.statuses_differ(pending.status, cached.status):
            self._settle(pending.uid)
            self._queue.remove(pending.uid)
            return
        self._queue.add(pending)
        if not self._queue.is_deferred(pending.uid):
            cached.status_pending(self._clock.monotonic())
        self._has_changed.set()

    async def run(self) -> None:
        """Write statuses until it is cancelled, which cancels the requests in flight, too."""
        # Made here, as the loop may be cancelled between `acquire` and the release of a slot.
        slots = asyncio.Semaphore(_MAX_IN_FLIGHT)
        self._failures.clear()
        for cached in self._objects:
            # Another leader has written since.
            cached.status_settled()
        async with asyncio.TaskGroup() as writes:
            while True:
                await slots.acquire()
                pending = await self._take()
                write = writes.create_task(self.write(pending))
                write.add_done_callback(lambda _: slots.release())

    async def _take(self) -> PendingStatus:
        while True:
            self._has_changed.clear()
            found = self._queue.take(self._clock.monotonic())
            if isinstance(found, PendingStatus):
                return found
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if found == float("inf") else found):
                    await self._has_changed.wait()

    async def write(self, pending: PendingStatus) -> None:
        """Write a status, or arrange its retry."""
        cached = self._objects.get(pending.uid)
        if cached is None:
            self._settle(pending.uid)
            return
        # A watch may report our write before the response arrives.
        before, inputs_before = cached.status, cached.synced_inputs
        try:
            await self._send(cached, pending.status)
        except _SERVER_ERRORS as error:
            self._pause(pending, error)
        except errors.ApiError as error:
            self._defer(pending, cached, error)
        else:
            self._settle(pending.uid)
            event = event_for_change(cached, before, pending.status)
            if event is not None:
                self._record_event(event)
            cached.status_written(pending.status, inputs_before)
            self.written.inc()

    def _settle(self, uid: UUID) -> None:
        self._failures.pop(uid, None)
        if (cached := self._objects.get(uid)) is not None:
            cached.status_settled()

    def _defer(self, pending: PendingStatus, cached: CachedObject, error: errors.ApiError) -> None:
        """Retry later: the object is deleted or replaced, or we are not allowed to write it."""
        cached.status_settled()
        self._failures[pending.uid] += 1
        seconds = self._backoff.pause(self._failures[pending.uid])
        self._queue.defer(pending, self._clock.monotonic() + seconds)
        self._has_changed.set()
        _log.warning(
            "status not written", error=str(error), retry_seconds=seconds, **cached.log_fields
        )

    def _pause(self, pending: PendingStatus, error: errors.ApiError) -> None:
        after = error.after if isinstance(error, errors.TransientApiError) else None
        seconds = after or self._backoff.first
        self.retried.inc()
        self._queue.requeue(pending)
        self._queue.pause(seconds, self._clock.monotonic())
        self._has_changed.set()
        _log.warning("status writes paused", seconds=seconds, error=str(error))


_TRIGGERS: Final = (
    events.EventTrigger("Accepted", "False"),
    events.EventTrigger("Reconciling", "True", events.NOT_ENABLED),
)


def event_for_change(
    cached: CachedObject, before: Mapping[str, Any], after: Mapping[str, Any]
) -> KubernetesEvent | None:
    """Return the Event for a status that begins to report something that a user has to act on."""
    cause = events.newly_reported(before, after, _TRIGGERS)
    if cause is None:
        return None
    one = cached.latest
    involved = events.InvolvedObject(str(one.kind), one.namespace, one.name, str(one.uid))
    # All objects that wait for the same namespace share one Event.
    is_shared = cause.reason == events.NOT_ENABLED
    key = one.namespace if is_shared else f"{one.uid}/{one.generation}"
    return events.KubernetesEvent(involved, cause, key)

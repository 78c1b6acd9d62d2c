"""Kubernetes Events: written slowly, at most once an hour each, and without blocking anybody.

An Event only repeats what a status says. So an Event that finds the queue full, or that the API
server does not accept in time, is dropped and counted. The name of an Event is a digest of what it
is about: a second leader that records the same Event gets a conflict instead of a duplicate.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import structlog
from prometheus_client import Counter

from workron.core.clock import Clock, Sleep
from workron.core.model.meta import API_VERSION
from workron_controller.kube import conditions, errors, resources
from workron_controller.kube.client import FIELD_MANAGER, ApiClient, RetryingCalls
from workron_controller.kube.conditions import StatusReason

MAX_PENDING_EVENTS: Final = 200
NOT_ENABLED: Final = "NamespaceNotEnabled"
_PAUSE_SECONDS: Final = 0.2
_MAX_REMEMBERED: Final = 2_000
_EVENT_TTL: Final = 3600.0
"""Seconds for which an API server keeps an Event by default."""
_MAX_MESSAGE: Final = 1024

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class InvolvedObject:
    """The object that an Event is about."""

    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class KubernetesEvent:
    """A warning about an object."""

    involved: InvolvedObject
    cause: StatusReason
    key: str
    """Events with the same key and reason are one Event."""

    @property
    def name(self) -> str:
        """The name of the Event, which is the same for every replica."""
        text = f"{self.key}\n{self.cause.reason}".encode()
        return f"workron.{hashlib.sha256(text).hexdigest()[:32]}"

    def manifest(self, now: datetime) -> dict[str, Any]:
        """Return the object to create."""
        at, involved = conditions.format_time(now), self.involved
        about = {"kind": involved.kind, "name": involved.name, "uid": involved.uid}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": involved.namespace},
            "involvedObject": {
                "apiVersion": API_VERSION, "namespace": involved.namespace, **about,
            },
            "type": "Warning",
            "reason": self.cause.reason,
            "message": self.cause.message[:_MAX_MESSAGE],
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }  # fmt: skip


class EventRecorder:
    """Writes the recorded Events while it runs."""

    def __init__(
        self,
        api: ApiClient,
        retrying: RetryingCalls,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
        max_remembered: int = _MAX_REMEMBERED,
    ) -> None:
        self._api = api
        self._retrying = retrying
        self._clock = clock
        self._sleep = sleep
        self._pending: asyncio.Queue[KubernetesEvent] = asyncio.Queue(MAX_PENDING_EVENTS)
        self._recorded = _RecentKeys(clock, max_remembered)
        self._logged = _RecentKeys(clock, max_remembered)
        self.dropped = Counter(
            "workron_controller_events_dropped", "Events that were not written.", registry=None
        )

    def record(self, event: KubernetesEvent) -> None:
        """Have an Event written, unless it was recorded within the hour; never blocks."""
        key = f"{event.involved.namespace}/{event.name}"
        if key in self._recorded:
            return
        if self._pending.full():
            self.dropped.inc()
            return
        self._recorded.add(key)
        self._pending.put_nowait(event)

    async def run(self) -> None:
        """Write Events until it is cancelled, which drops those that are pending."""
        try:
            while True:
                await self._write(await self._pending.get())
                await self._sleep(_PAUSE_SECONDS)
        finally:
            while not self._pending.empty():
                self._pending.get_nowait()

    async def _write(self, event: KubernetesEvent) -> None:
        namespace = event.involved.namespace
        body = event.manifest(self._clock.now())
        path = resources.EVENTS.at(namespace)
        try:
            await self._retrying(functools.partial(self._api.create, path, body))
        except errors.ConflictError:
            # An earlier leader has written it.
            return
        except errors.ApiError as error:
            self.dropped.inc()
            if namespace not in self._logged:
                self._logged.add(namespace)
                _log.warning("event not written", namespace=namespace, error=str(error))


class _RecentKeys:
    """The keys that were added within the last hour, at most `limit` of them."""

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self._added_at: OrderedDict[str, float] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        at = self._added_at.get(key)
        return at is not None and self._clock.monotonic() < at + _EVENT_TTL

    def add(self, key: str) -> None:
        self._added_at.pop(key, None)
        self._added_at[key] = self._clock.monotonic()
        if len(self._added_at) > self._limit:
            self._added_at.popitem(last=False)


class EventTrigger(NamedTuple):
    """A condition that is worth an Event."""

    type: str
    status: str
    reason: str | None = None
    """None: any reason."""


def newly_reported(
    before: Mapping[str, Any], after: Mapping[str, Any], triggers: Sequence[EventTrigger]
) -> StatusReason | None:
    """Return what `after` reports by one of the triggers and `before` did not.

    Only the reason counts: messages have names of pods and numbers that change all the time.
    """
    old, new = _reported(before, triggers), _reported(after, triggers)
    return None if new is None or (old is not None and old.reason == new.reason) else new


def _reported(status: Mapping[str, Any], triggers: Sequence[EventTrigger]) -> StatusReason | None:
    found = status.get("conditions")
    for condition in found if isinstance(found, list) else ():
        # A user may have written it.
        if isinstance(condition, dict):
            kind, value, reason = (condition.get(name) for name in ("type", "status", "reason"))
            for trigger in triggers:
                has_reason = trigger.reason is None or trigger.reason == reason
                if has_reason and (kind, value) == (trigger.type, trigger.status):
                    return StatusReason(str(reason), str(condition.get("message") or ""))
    return None

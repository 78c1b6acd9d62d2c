"""Writes Events, slowly and in nobody's way: who has a notice leaves it here and goes on.

An Event is a courtesy, as what it says stands in a status, too. So one that finds no room, or is
not taken by the API server in time, is left out, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from workron.core.model.meta import API_VERSION
from workron_controller.jobs.cache import StatusReason
from workron_controller.kube import conditions, errors, resources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from workron.core.clock import Clock, Sleep
    from workron_controller.jobs.cache import CachedObject
    from workron_controller.kube.client import RetryingCalls
    from workron_controller.kube.resources import ResourcePath


MAX_PENDING_EVENTS: Final = 200
_PAUSE_SECONDS: Final = 0.2
_MOST_REMEMBERED: Final = 2_000
_HOUR: Final = 3600.0
"""So long an API server keeps an Event, unless it is told otherwise."""

_log = structlog.get_logger(__name__)


class EventClient(Protocol):
    """What of `api.server` is needed here."""

    async def create(self, place: ResourcePath, body: Mapping[str, Any], /) -> object:
        """Make an object in this collection."""


class EventRecorder:
    """Tells what is left here for as long as it runs."""

    def __init__(
        self, api: EventClient, retrying: RetryingCalls, clock: Clock, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._api = api
        self._retrying = retrying
        self._clock = clock
        self._sleep = sleep
        self._waiting: deque[KubernetesEvent] = deque()
        self._has_news = asyncio.Event()
        self._told = _Lately(clock)
        self._complained = _Lately(clock)
        self.left_out = 0

    def leave(self, notice: KubernetesEvent) -> None:
        """Have it told, unless it was within the hour; never waits."""
        what = f"{notice.subject.namespace}/{notice.name}"
        if self._told.knows(what):
            return
        if len(self._waiting) >= MAX_PENDING_EVENTS:
            self.left_out += 1
            return
        self._told.note(what)
        self._waiting.append(notice)
        self._has_news.set()

    async def run(self) -> None:
        """Go on for ever; what waits when this is cancelled is left out."""
        try:
            while True:
                while self._waiting:
                    await self._tell(self._waiting.popleft())
                    await self._sleep(_PAUSE_SECONDS)
                self._has_news.clear()
                await self._has_news.wait()
        finally:
            self._waiting.clear()

    async def _tell(self, notice: KubernetesEvent) -> None:
        namespace = notice.subject.namespace
        body = notice.manifest(self._clock.now())
        place = resources.EVENTS.at(namespace)
        try:
            await self._retrying(functools.partial(self._api.create, place, body))
        except errors.ConflictError:
            # It was told before, by whoever led then.
            return
        except errors.ApiError as refused:
            self.left_out += 1
            if not self._complained.knows(namespace):
                self._complained.note(namespace)
                _log.warning("event is not written", namespace=namespace, error=str(refused))


class _Lately:
    """What has been within the last hour, as far as there is room to remember it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: OrderedDict[str, float] = OrderedDict()

    def knows(self, what: str) -> bool:
        """Tell whether that has been."""
        at = self._at.get(what)
        return at is not None and self._clock.monotonic() < at + _HOUR

    def note(self, what: str) -> None:
        """Remember that it is now."""
        self._at.pop(what, None)
        self._at[what] = self._clock.monotonic()
        if len(self._at) > _MOST_REMEMBERED:
            self._at.popitem(last=False)


if TYPE_CHECKING:
    Call = tuple[str, str, str | None]
    """Type, status and reason of a condition that calls for a person; None: whatever the reason."""

NOT_ENABLED: Final = "NamespaceNotEnabled"
COMPONENT: Final = "workron-controller"
_OF_OBJECTS: Final[Sequence[Call]] = (
    ("Accepted", "False", None),
    ("Reconciling", "True", NOT_ENABLED),
)
_MESSAGE: Final = 1024


@dataclass(frozen=True, slots=True)
class InvolvedObject:
    """The object that a notice is about."""

    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class KubernetesEvent:
    """What is to be told, and of what."""

    subject: InvolvedObject
    why: StatusReason
    occasion: str
    """Of all notices with the same occasion and reason one is enough."""

    @property
    def name(self) -> str:
        """Name its Event: the same for the same, of which the API server takes but one."""
        # Not of the object: of many that wait for one thing, whichever is told of stands for all.
        told = f"{self.occasion}\n{self.why.reason}".encode()
        return f"workron.{hashlib.sha256(told).hexdigest()[:32]}"

    def manifest(self, now: datetime) -> dict[str, Any]:
        """Give the Event."""
        at, subject = conditions.format_time(now), self.subject
        about = {"kind": subject.kind, "name": subject.name, "uid": subject.uid}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": subject.namespace},
            "involvedObject": {
                "apiVersion": API_VERSION, "namespace": subject.namespace, **about,
            },
            "type": "Warning",
            "reason": self.why.reason,
            "message": self.why.message[:_MESSAGE],
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }  # fmt: skip


def event_of_status_change(
    seen: CachedObject, before: Mapping[str, Any], after: Mapping[str, Any]
) -> KubernetesEvent | None:
    """Say what a Job or a Workflow begins to tell that a person must act on, if it does."""
    why = event_if_begun(before, after, _OF_OBJECTS)
    if why is None:
        return None
    subject = InvolvedObject(str(seen.kind), seen.namespace, seen.name, str(seen.uid))
    # A namespace has no place of its own to say it: one of all the objects that wait there does.
    is_shared = why.reason == NOT_ENABLED
    return KubernetesEvent(
        subject, why, seen.namespace if is_shared else f"{seen.uid}/{seen.generation}"
    )


def event_if_begun(
    before: Mapping[str, Any], after: Mapping[str, Any], calls: Sequence[Call]
) -> StatusReason | None:
    """Say for what a status calls that it did not call for before; by its reason alone.

    Messages count what changes all the time: pods by their names, workers that are missing.
    """
    was, why = _called_for(before, calls), _called_for(after, calls)
    return None if why is None or (was is not None and was.reason == why.reason) else why


def _called_for(status: Mapping[str, Any], calls: Sequence[Call]) -> StatusReason | None:
    told = status.get("conditions")
    for one in told if isinstance(told, list) else ():
        # Anybody may have written that.
        if isinstance(one, dict) and any(_is_call(one, call) for call in calls):
            return StatusReason(str(one.get("reason")), str(one.get("message") or ""))
    return None


def _is_call(condition: Mapping[str, Any], call: Call) -> bool:
    kind, holds, reason = call
    is_it = (condition.get("type"), condition.get("status")) == (kind, holds)
    return is_it and reason in {None, condition.get("reason")}

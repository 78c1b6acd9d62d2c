"""Kopf watches the objects, and rings here. It runs in a thread and a loop of its own, supervised.

At its end Kopf cancels all that runs in its loop, and it ends for good at an error of a watch that
it does not know; so it is begun again, and shares its loop with nobody. It writes nothing: there
are handlers of raw events only.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import threading
from collections import Counter
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import kopf
import structlog

from workron.core.plan import Kind
from workron_controller.jobs import cache, object_parser
from workron_controller.jobs.workqueue import QueuedObject
from workron_controller.kube import resources
from workron_controller.kube.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from workron.core.clock import Clock, Rng
    from workron_controller.jobs.cache import CachedObject, ObjectCache
    from workron_controller.jobs.workqueue import Workqueue
    from workron_controller.kube.auth import ApiAccess


class NoDiffStorage(kopf.DiffBaseStorage):
    """Knows no earlier edition of any object, and takes none down."""

    def fetch(self, **_: Any) -> None:
        """Give the earlier edition."""

    def build(self, **_: Any) -> Any:
        """Give what of an object would be compared with it."""

    def store(self, **_: Any) -> None:
        """Take down an edition."""


_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_JOIN_SECONDS: Final = 10.0
_CHUNK: Final = 500
_NOBODY: Final[Any] = "workron-controller"
"""Kopf has no peers here; by itself it asks for the user's name, and in a pod there is none."""
_LOGIN_SECONDS: Final = 30.0

_log = structlog.get_logger(__name__)
# It hears no signals where it runs, and says so at each start; who runs it hears them.
logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


class Informer:
    """Has an ear hear of all objects of some namespaces, or of all."""

    def __init__(
        self,
        ear: ObjectHandler,
        access: ApiAccess,
        namespaces: Collection[str],
        clock: Clock,
        rng: Rng,
    ) -> None:
        self._ear = ear
        self._access = access
        self._namespaces = namespaces
        self._clock = clock
        self._rng = rng
        self._is_over = threading.Event()
        self._stops: dict[str | None, Callable[[], object]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.restarts = 0

    async def run(self) -> None:
        """Go on until it is cancelled."""
        self._loop = loop = asyncio.get_running_loop()
        # One that is forbidden a namespace ends; the others go on.
        places: list[str | None] = [*self._namespaces] or [None]
        threads = [
            threading.Thread(target=self._supervise, args=(loop, place), daemon=True)
            for place in places
        ]
        for thread in threads:
            thread.start()
        try:
            await loop.create_future()
        finally:
            self._is_over.set()
            for stop in self._stops.values():
                # Its loop may be over, and another one not begun.
                with contextlib.suppress(RuntimeError):
                    stop()
            for thread in threads:
                await asyncio.to_thread(thread.join, _JOIN_SECONDS)

    def _supervise(self, loop: asyncio.AbstractEventLoop, place: str | None) -> None:
        pauses = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        while not self._is_over.is_set():
            began = self._clock.monotonic()
            try:
                asyncio.run(self._watch(loop, place))
            except Exception as trouble:  # noqa: BLE001 - whatever it is, it is begun again
                _log.warning("watch ended", namespace=place, error=repr(trouble))
            # Until it watches again, and in the gap before that, only a list tells of anything.
            loop.call_soon_threadsafe(self._ear.inbox.has_overflown.set)
            if self._clock.monotonic() - began >= _LONGEST_PAUSE:
                # It did its work: what ended it is another matter than what may have been before.
                pauses.reset()
            if self._is_over.wait(pauses.more() * (0.5 + self._rng.random())):
                return
            self.restarts += 1

    async def _watch(self, loop: asyncio.AbstractEventLoop, place: str | None) -> None:
        # A flag of threads is waited for in a thread, which outlives what Kopf dies of.
        stop = asyncio.Event()
        self._stops[place] = functools.partial(
            asyncio.get_running_loop().call_soon_threadsafe, stop.set
        )
        if self._is_over.is_set():
            return
        await kopf.operator(
            registry=self._registry(loop),
            settings=_settings(),
            identity=_NOBODY,
            standalone=True,
            clusterwide=place is None,
            namespaces=[] if place is None else [place],
            stop_flag=stop,
        )

    def _registry(self, loop: asyncio.AbstractEventLoop) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._log_in)
        for kind in (Kind.JOB, Kind.WORKFLOW):
            named = resources.BY_KIND[kind]
            kopf.on.event(named.group, named.version, named.plural, registry=registry)(
                self._handler(kind, loop)
            )
        return registry

    def _log_in(self, **_: Any) -> kopf.ConnectionInfo:
        """Give the way in as it is now; Kopf asks again when it is refused."""
        assert self._loop is not None
        # One access serves one loop, and Kopf asks from a thread of its own.
        asked = asyncio.run_coroutine_threadsafe(self._access.anew(), self._loop)
        return asked.result(_LOGIN_SECONDS).for_kopf

    def _handler(self, kind: Kind, loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
        async def ring(event: Mapping[str, Any], **_: Any) -> None:
            hear = self._ear.hear_gone if event["type"] == "DELETED" else self._ear.hear
            loop.call_soon_threadsafe(hear, kind, event["object"])

        return ring


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.watching.chunk_size = _CHUNK
    settings.watching.server_timeout = 600
    settings.networking.request_timeout = 30
    settings.queueing.idle_timeout = 0.5
    settings.persistence.diffbase_storage = NoDiffStorage()
    settings.persistence.finalizer = f"{resources.GROUP}/unused"
    return settings


class ChangeKind(StrEnum):
    """What a watch should have told of."""

    ADDED = "Added"
    EDITED = "Edited"
    DELETED = "Deleted"


class MissedChanges:
    """Those of one replica, since it began to watch."""

    def __init__(self) -> None:
        self.counts = Counter(dict.fromkeys(ChangeKind, 0))
        self._gone: set[UUID] = set()

    def listed(self, raw: Mapping[str, Any], known: CachedObject | None, before: datetime) -> None:
        """Take note of an object in a list, what was known of it, and until when it is due."""
        metadata = raw["metadata"]
        if known is None:
            self._count(ChangeKind.ADDED, _read(metadata.get("creationTimestamp")), before)
        elif cache.generation(raw) > known.generation:
            self._count(ChangeKind.EDITED, max(_edits(metadata), default=None), before)

    def lacked(self, uid: UUID) -> None:
        """Take note that a list has it no more."""
        self._gone.add(uid)

    def told_gone(self, uid: UUID) -> None:
        """Take note that a watch tells the same."""
        self._gone.discard(uid)

    def settle(self) -> None:
        """Give up waiting for watches to tell of what lists lacked."""
        self.counts[ChangeKind.DELETED] += len(self._gone)
        self._gone.clear()

    def _count(self, change: ChangeKind, at: datetime | None, before: datetime) -> None:
        # Of what does not say when it was nothing can be said.
        self.counts[change] += at is not None and at < before


def _edits(metadata: Mapping[str, Any]) -> Iterator[datetime]:
    """Give when its spec was written, by each who has written it."""
    for one in metadata.get("managedFields") or ():
        if not one.get("subresource") and (at := _read(one.get("time"))) is not None:
            yield at


def _read(text: object) -> datetime | None:
    try:
        read = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


_MANAGED: Final = "managedFields"
_STATUS: Final = "status"


class ObjectHandler:
    """Hears of objects; never waits."""

    def __init__(self, objects: ObjectCache, inbox: Workqueue) -> None:
        self.objects = objects
        self.inbox = inbox
        self.misses = MissedChanges()

    def hear(self, kind: Kind, raw: Mapping[str, Any]) -> UUID | None:
        """Take in an object as it is now, and give its uid; None if it cannot be taken for one."""
        return handle_safely(self._hear, kind, raw)

    def hear_gone(self, kind: Kind, raw: Mapping[str, Any]) -> UUID | None:
        """Take in that there is no such object any more."""
        return handle_safely(self._hear_gone, kind, raw)

    def _hear(self, kind: Kind, raw: Mapping[str, Any]) -> UUID:
        if raw["metadata"].get("deletionTimestamp"):
            # Others may hold it up for long; who deletes it wants it to end now.
            return self._hear_gone(kind, raw)
        seen = self.objects.note(object_parser.parse_object(kind, raw))
        if _is_news(seen):
            self.inbox.put(QueuedObject(seen.uid, kind, _kept(raw)))
        return seen.uid

    def _hear_gone(self, kind: Kind, raw: Mapping[str, Any]) -> UUID:
        uid = UUID(raw["metadata"]["uid"])
        self.objects.forget(uid)
        self.misses.told_gone(uid)
        self.inbox.put(QueuedObject(uid, kind, None))
        return uid


def _kept(raw: Mapping[str, Any]) -> bytes:
    """Word all of it but what the cluster says of it, which may be as much again."""
    metadata = {name: value for name, value in raw["metadata"].items() if name != _MANAGED}
    asked = {name: value for name, value in raw.items() if name != _STATUS}
    # Of all that words JSON this alone bears whatever a string or a number may be.
    return json.dumps(asked | {"metadata": metadata}, separators=(",", ":")).encode()


def handle_safely(
    hear: Callable[[Kind, Mapping[str, Any]], UUID | None], kind: Kind, raw: Mapping[str, Any]
) -> UUID | None:
    """Have an object heard, whatever it is."""
    try:
        return hear(kind, raw)
    except Exception:  # noqa: BLE001 - nothing in one object may end the watch or the list of all
        _log.exception("object cannot be heard", kind=kind, metadata=raw.get("metadata"))
        return None


def _is_news(seen: CachedObject) -> bool:
    """Tell whether the store has to hear of it: not of what had ended when it was first seen."""
    return seen.generation > seen.heard and not (seen.run is None and seen.is_told_over)

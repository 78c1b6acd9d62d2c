"""Compares all objects that there are with what the store was made of: at first, and then at times.

Watches lose things: what was deleted while nobody watched is never told of. So this is what all
rests on, and watches only make it quick. A job counts as one whose object was deleted only if its
object can be seen from here, was stored before a complete list began, is missing in that list, and
is asked for by its name in vain, or has another uid there.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

import structlog

from workron.core import errors
from workron.core.plan import Kind
from workron_controller.jobs import informer
from workron_controller.jobs.workqueue import QueuedObject
from workron_controller.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from datetime import datetime

    from workron.core.clock import Clock, Rng
    from workron.store.api import OperatorStore
    from workron.store.types import OwnedRun
    from workron_controller.jobs.informer import ObjectHandler


RESYNC_PERIOD: Final = timedelta(minutes=5)
_RETRY_SECONDS: Final = 5.0
_AT_ONCE: Final = 1_000
RESYNC_MARGIN: Final = timedelta(seconds=30)
"""The database has a clock of its own."""

_log = structlog.get_logger(__name__)


class ObjectLister(Protocol):
    """What of the API server is needed here: the objects that can be seen from here."""

    def objects(self, kind: Kind) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        """List all, some at a time; raises rather than leave any out."""

    def covers(self, namespace: str) -> bool:
        """Tell whether objects of this namespace are among them."""

    async def uid_of(self, kind: Kind, namespace: str, name: str) -> UUID | None:
        """Ask for one by its name."""


class Resync:
    """Compares for as long as it runs: once in a period, or at once when something was missed."""

    def __init__(
        self,
        cluster: ObjectLister,
        store: OperatorStore,
        ear: ObjectHandler,
        clock: Clock,
        rng: Rng,
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._ear = ear
        self._clock = clock
        self._rng = rng
        self.completed_at: float | None = None
        """When the last one was complete, on the monotonic clock."""

    async def run(self) -> None:
        """Go on for ever."""
        while True:
            self._ear.inbox.has_overflown.clear()
            try:
                await self.compare()
                rest = RESYNC_PERIOD.total_seconds() * (0.9 + 0.2 * self._rng.random())
            except (ApiError, errors.StoreError) as trouble:
                _log.warning("objects cannot be compared", error=str(trouble))
                rest = _RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await self._ear.inbox.has_overflown.wait()
                    # What turned it away has to be worked off first.
                    await asyncio.sleep(_RETRY_SECONDS)

    async def compare(self) -> None:
        """List all objects, take in what is new, and find what is gone."""
        began = self._clock.now()
        self._ear.misses.settle()
        before = {seen.uid for seen in self._ear.objects}
        listed: set[UUID] = set()
        for kind in (Kind.JOB, Kind.WORKFLOW):
            async for page in self._cluster.objects(kind):
                heard = (self._hear(kind, raw, began) for raw in page)
                listed.update(uid for uid in heard if uid is not None)
                # A page is much to take in at once, and there may be many.
                await asyncio.sleep(0)
        for uid in before - listed:
            self._lose(uid)
        # What was written is in the lists by now; what else is there is somebody else's.
        self._ear.objects.doubt()
        async for owned in self._missing(listed):
            if owned.submitted_at < began - RESYNC_MARGIN and await self._is_gone(owned):
                self._ear.inbox.put(QueuedObject(owned.uid, owned.kind, None))
                _log.info("object is gone", kind=owned.kind, name=owned.name)
        self.completed_at = self._clock.monotonic()

    def _hear(self, kind: Kind, raw: Mapping[str, Any], began: datetime) -> UUID | None:
        return informer.handle_safely(functools.partial(self._heard, began), kind, raw)

    def _heard(self, began: datetime, kind: Kind, raw: Mapping[str, Any]) -> UUID | None:
        if self.completed_at is not None:
            # Before that nobody had watched.
            known = self._ear.objects.get(UUID(raw["metadata"]["uid"]))
            self._ear.misses.listed(raw, known, before=began - RESYNC_MARGIN)
        return self._ear.hear(kind, raw)

    def _lose(self, uid: UUID) -> None:
        if self._ear.objects.get(uid) is not None:
            self._ear.objects.forget(uid)
            self._ear.misses.lacked(uid)

    async def _missing(self, listed: set[UUID]) -> AsyncIterator[OwnedRun]:
        after = 0
        while some := await self._store.list_owned(_AT_ONCE, after=after):
            after = some[-1].run
            for owned in some:
                if (seen := self._ear.objects.get(owned.uid)) is not None:
                    # Its status may say that it has ended, whoever wrote that.
                    seen.run = owned.run
                elif owned.uid not in listed and self._cluster.covers(owned.namespace):
                    yield owned

    async def _is_gone(self, owned: OwnedRun) -> bool:
        return await self._cluster.uid_of(owned.kind, owned.namespace, owned.name) != owned.uid

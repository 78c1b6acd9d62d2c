"""Objects that were heard of, and what is written into their statuses."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.controller import cluster
from tests.controller.cluster import Raw
from tests.controller.hand_time import HandTime
from workron.core.plan import Kind
from workron.store.api import Store
from workron_controller.jobs.cache import CachedObject, StatusReason
from workron_controller.jobs.informer import ObjectHandler
from workron_controller.jobs.status_sync import StatusSync
from workron_controller.jobs.status_writer import PendingStatus, StatusQueue, StatusWriter
from workron_controller.jobs.submitter import Submitter
from workron_controller.jobs.ttl import TtlController
from workron_controller.kube import errors
from workron_controller.kube.events import KubernetesEvent


class Scene:
    """Objects, a store, and an API server that notes what is written, or does not take it."""

    def __init__(self, store: Store, ear: ObjectHandler, time: HandTime) -> None:
        self.store = store
        self.ear = ear
        self.clock = time
        self.written: list[Mapping[str, Any]] = []
        self.trouble: errors.ApiError | None = None
        self.hints: dict[tuple[str, str], StatusReason] = {}
        self.outbox = StatusQueue(rate=1000, burst=1000)
        self.notices: list[KubernetesEvent] = []
        leave = self.notices.append
        self.writer = StatusWriter(self._write, self.outbox, ear.objects, time, leave)
        hint = lambda *place: self.hints.get(place)  # noqa: E731 - it is one
        self.looking = StatusSync(store, ear.objects, self.writer.put, hint, time)
        self.tries = 0
        self.meanwhile: Callable[[], object] = lambda: None
        self.deleted: list[str] = []
        self.farewell = TtlController(store, self._delete, ear.objects, time)

    async def _write(self, seen: CachedObject, said: Mapping[str, Any]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.meanwhile()
        await self.looking.look()
        self.written.append(said)
        # A watch may be quicker than the answer.
        seen.status = said

    async def _delete(self, seen: CachedObject) -> None:
        self.deleted.append(seen.name)

    async def see(self, raw: Raw) -> CachedObject:
        self.ear.hear(Kind(raw["kind"]), raw)
        carrier = Submitter(self.store, self.ear.inbox, self.ear.objects)
        await carrier.carry(await self.ear.inbox.take(10, 1 << 20))
        seen = self.ear.objects.get(cluster.uid_of(raw))
        assert seen is not None
        return seen

    async def look(self, seconds: float = 2) -> list[Mapping[str, Any]]:
        """Look, send what is to be sent, and give what was written."""
        self.clock.turn(seconds)
        self.written = []
        await self.looking.look()
        while isinstance(letter := self.outbox.take(self.clock.monotonic()), PendingStatus):
            self.tries += 1
            await self.writer.deliver(letter)
            if self.trouble is not None:
                break
        return self.written


@pytest.fixture
def scene(store: Store, ear: ObjectHandler, time: HandTime) -> Scene:
    return Scene(store, ear, time)

"""Objects that were heard of, and what is written into their statuses."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.controller import cluster
from tests.controller.cluster import Raw
from tests.controller.manual_clock import ManualClock
from workron.core.plan import Kind
from workron.store.api import Store
from workron_controller.jobs.cache import CachedObject
from workron_controller.jobs.object_handler import ObjectHandler
from workron_controller.jobs.status_sync import StatusSync
from workron_controller.jobs.status_writer import PendingStatus, StatusQueue, StatusWriter
from workron_controller.jobs.submitter import Submitter
from workron_controller.jobs.ttl import TtlController
from workron_controller.kube import errors
from workron_controller.kube.conditions import StatusReason
from workron_controller.kube.events import KubernetesEvent


class Scene:
    """Objects, a store, and an API server that notes what is written, or does not take it."""

    def __init__(self, store: Store, handler: ObjectHandler, time: ManualClock) -> None:
        self.store = store
        self.handler = handler
        self.clock = time
        self.written: list[Mapping[str, Any]] = []
        self.trouble: errors.ApiError | None = None
        self.hints: dict[tuple[str, str], StatusReason] = {}
        self.status_queue = StatusQueue(rate=1000, burst=1000)
        self.notices: list[KubernetesEvent] = []
        leave = self.notices.append
        self.writer = StatusWriter(self._write, self.status_queue, handler.objects, time, leave)
        hint = lambda *place: self.hints.get(place)  # noqa: E731 - it is one
        self.status_sync = StatusSync(store, handler.objects, self.writer.enqueue, hint, time)
        self.tries = 0
        self.meanwhile: Callable[[], object] = lambda: None
        self.deleted: list[str] = []
        self.ttl = TtlController(store, self._delete, handler.objects, time)

    async def _write(self, seen: CachedObject, said: Mapping[str, Any]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.meanwhile()
        await self.status_sync.run_once()
        self.written.append(said)
        # A watch may be quicker than the answer.
        seen.observed(dataclasses.replace(seen.latest, status=said))

    async def _delete(self, seen: CachedObject) -> None:
        self.deleted.append(seen.latest.name)

    async def see(self, raw: Raw) -> CachedObject:
        self.handler.handle_update(Kind(raw["kind"]), raw)
        submitter = Submitter(self.store, self.handler.workqueue, self.handler.objects)
        await submitter.process(await self.handler.workqueue.take(10, 1 << 20))
        seen = self.handler.objects.get(cluster.uid_of(raw))
        assert seen is not None
        return seen

    async def look(self, seconds: float = 2) -> list[Mapping[str, Any]]:
        """Look, send what is to be sent, and give what was written."""
        self.clock.turn(seconds)
        self.written = []
        await self.status_sync.run_once()
        while isinstance(pending := self.status_queue.take(self.clock.monotonic()), PendingStatus):
            self.tries += 1
            await self.writer.write(pending)
            if self.trouble is not None:
                break
        return self.written


@pytest.fixture
def scene(store: Store, handler: ObjectHandler, time: ManualClock) -> Scene:
    return Scene(store, handler, time)

"""The status sync, the status writer and the TTL controller over a store, without an API server."""

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


class StatusHarness:
    """Objects and a store; records the written statuses, or refuses them with `write_error`."""

    def __init__(self, store: Store, handler: ObjectHandler, time: ManualClock) -> None:
        self.store = store
        self.handler = handler
        self.clock = time
        self.written: list[Mapping[str, Any]] = []
        self.write_error: errors.ApiError | None = None
        self.blocking: dict[tuple[str, str], StatusReason] = {}
        self.status_queue = StatusQueue(rate=1000, burst=1000)
        self.events: list[KubernetesEvent] = []
        self.writer = StatusWriter(
            self._write, self.status_queue, handler.objects, time, self.events.append
        )
        self.status_sync = StatusSync(
            store,
            handler.objects,
            self.writer.enqueue,
            lambda *pool: self.blocking.get(pool),
            time,
        )
        self.attempts = 0
        self.during_write: Callable[[], object] = lambda: None
        self.deleted: list[str] = []
        self.ttl = TtlController(store, self._delete, handler.objects, time)

    async def _write(self, cached: CachedObject, status: Mapping[str, Any]) -> None:
        if self.write_error is not None:
            raise self.write_error
        self.during_write()
        await self.status_sync.run_once()
        self.written.append(status)
        # A watch may report the write before the response arrives.
        cached.observed(dataclasses.replace(cached.latest, status=status))

    async def _delete(self, cached: CachedObject) -> None:
        self.deleted.append(cached.latest.name)

    async def apply(self, raw: Raw) -> CachedObject:
        self.handler.handle(Kind(raw["kind"]), raw)
        submitter = Submitter(
            self.store, self.handler.workqueue, self.handler.objects, cluster.not_terminating
        )
        await submitter.process(await self.handler.workqueue.take(10, 1 << 20))
        cached = self.handler.objects.get(cluster.uid_of(raw))
        assert cached is not None
        return cached

    async def sync(self, seconds: float = 2) -> list[Mapping[str, Any]]:
        """Compute statuses, write those that are due, and return them."""
        self.clock.advance(seconds)
        self.written = []
        await self.status_sync.run_once()
        while isinstance(pending := self.status_queue.take(self.clock.monotonic()), PendingStatus):
            self.attempts += 1
            await self.writer.write(pending)
            if self.write_error is not None:
                break
        return self.written


@pytest.fixture
def harness(store: Store, handler: ObjectHandler, time: ManualClock) -> StatusHarness:
    return StatusHarness(store, handler, time)

"""The resync: compares all objects of the cluster with the store, at start and every five minutes.

Watches lose events: a deletion that happens while no watch runs is never reported. So correctness
rests on the resync, and watches only make it fast. A resync runs earlier when the workqueue has
dropped an object or a watch has ended.

The run of an object that is not listed is cancelled only if
- the lists cover the namespace of the object,
- the run was submitted before the lists began, by `RESYNC_MARGIN`,
- no list has the uid of the object, and
- a request by name finds no object, or one with another uid.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from workron.core import errors
from workron.core.clock import Clock, Rng
from workron.core.plan import Kind
from workron.store.api import OperatorStore
from workron.store.types import OwnedRun
from workron_controller.jobs.custom_objects import CustomObjects
from workron_controller.jobs.object_handler import ObjectHandler
from workron_controller.jobs.workqueue import QueuedObject
from workron_controller.kube.errors import ApiError

RESYNC_PERIOD: Final = timedelta(minutes=5)
RESYNC_MARGIN: Final = timedelta(seconds=30)
"""The clocks of the database and of this replica may differ by this much."""
_RETRY_SECONDS: Final = 5.0
_PAGE_SIZE: Final = 1_000

_log = structlog.get_logger(__name__)


class Resync:
    """Compares objects with runs."""

    def __init__(
        self,
        cluster: CustomObjects,
        store: OperatorStore,
        handler: ObjectHandler,
        clock: Clock,
        rng: Rng,
        margin: timedelta = RESYNC_MARGIN,
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._handler = handler
        self._clock = clock
        self._rng = rng
        self._margin = margin
        self.completed_at: float | None = None
        """When the last complete resync ended, on the monotonic clock."""

    async def run(self) -> None:
        """Resync until it is cancelled."""
        while True:
            self._handler.workqueue.has_overflowed.clear()
            try:
                await self.run_once()
                pause = RESYNC_PERIOD.total_seconds() * (0.9 + 0.2 * self._rng.random())
            except (ApiError, errors.StoreError) as error:
                _log.warning("resync failed", error=str(error))
                pause = _RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._handler.workqueue.has_overflowed.wait()
                    # Let the submitter make room in the queue first.
                    await asyncio.sleep(_RETRY_SECONDS)

    async def run_once(self) -> None:
        """List all objects, handle them, and cancel the runs of deleted ones."""
        before = self._clock.now() - self._margin
        # The first resync finds objects that no watch could have reported.
        expected_before = None if self.completed_at is None else before
        self._handler.missed_changes.close_window()
        known = {cached.uid for cached in self._handler.objects}
        listed: set[UUID] = set()
        for kind in (Kind.JOB, Kind.WORKFLOW):
            async for page in self._cluster.list_pages(kind):
                uids = (
                    self._handler.handle(kind, raw, expected_before=expected_before) for raw in page
                )
                listed.update(uid for uid in uids if uid is not None)
                # Let other tasks run between pages.
                await asyncio.sleep(0)
        for uid in known - listed:
            if self._handler.objects.get(uid) is not None:
                self._handler.objects.remove(uid)
                self._handler.missed_changes.expect_deletion(uid)
        # The lists have every status that was written before, by this replica or by others.
        self._handler.objects.mark_all_unsynced()
        async for owned in self._unlisted(listed):
            if owned.submitted_at >= before:
                continue
            if await self._cluster.find_uid(owned.kind, owned.namespace, owned.name) != owned.uid:
                self._handler.workqueue.add(QueuedObject(owned.uid, owned.kind, None))
                _log.info("found deleted object", kind=owned.kind, name=owned.name)
        self.completed_at = self._clock.monotonic()

    async def _unlisted(self, listed: set[UUID]) -> AsyncIterator[OwnedRun]:
        """Yield the runs of objects that should have been listed and were not."""
        after = 0
        while page := await self._store.list_owned(_PAGE_SIZE, after=after):
            after = page[-1].run
            for owned in page:
                if (cached := self._handler.objects.get(owned.uid)) is not None:
                    # Its status is written even if it claims to have ended: users can edit it.
                    cached.run_found(owned.run)
                elif owned.uid not in listed and self._cluster.covers(owned.namespace):
                    yield owned

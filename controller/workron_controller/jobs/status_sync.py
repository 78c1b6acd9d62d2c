"""The status sync: computes the status of every active object from its rows in the store.

It reads all rows in a loop and keeps no state of its own but what each status was computed from, so
the next round finds whatever an earlier one has missed. After a round it rests for four times as
long as the round took: however many objects there are, it uses a fifth of its time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from workron.core import errors
from workron.core.plan import Kind
from workron.core.states import TERMINAL_STATES
from workron.scheduling import job_view
from workron_controller.jobs import status
from workron_controller.jobs.status_writer import PendingStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from workron.core.clock import Clock
    from workron.core.ids import JobId
    from workron.store.api import ReadStore
    from workron.store.types import JobRow
    from workron_controller.jobs.cache import CachedObject, ObjectCache
    from workron_controller.jobs.status import Status
    from workron_controller.kube.conditions import StatusReason

    BlockingReason = Callable[[str, str], StatusReason | None]
    """Why no worker can claim the jobs of a namespace and pool, if none can."""


_PAGE_SIZE: Final = 1_000
_MIN_PAUSE: Final = 0.25
_REST_FACTOR: Final = 4
_COUNT_SECONDS: Final = 5.0
"""The jobs of a workflow are counted at most this often while its own row does not change."""

_log = structlog.get_logger(__name__)


class StatusSync:
    """Computes statuses and enqueues those that may have changed."""

    def __init__(
        self,
        store: ReadStore,
        objects: ObjectCache,
        enqueue: Callable[[PendingStatus], None],
        blocking_reason: BlockingReason,
        clock: Clock,
    ) -> None:
        self._store = store
        self._objects = objects
        self._enqueue = enqueue
        self._blocking_reason = blocking_reason
        self._clock = clock

    async def run(self) -> None:
        """Compute statuses until it is cancelled."""
        while True:
            started_at = self._clock.monotonic()
            try:
                await self.run_once()
            except errors.StoreError as error:
                _log.warning("statuses not computed", error=str(error))
            took = self._clock.monotonic() - started_at
            await asyncio.sleep(max(_MIN_PAUSE, _REST_FACTOR * took))

    async def run_once(self) -> None:
        """Compute the status of every active object once."""
        active = [cached for cached in self._objects if cached.is_active]
        for cached in active:
            if cached.rejection is not None:
                now = self._clock.now()
                rejected = status.rejected_status(cached, cached.rejection, now)
                self._enqueue(PendingStatus(cached.uid, rejected, is_final=False))
        submitted = [cached for cached in active if cached.run is not None]
        for first in range(0, len(submitted), _PAGE_SIZE):
            await self._sync_page(submitted[first : first + _PAGE_SIZE])

    async def _sync_page(self, page: Sequence[CachedObject]) -> None:
        by_run: dict[JobId, CachedObject] = {
            cached.run: cached for cached in page if cached.run is not None
        }
        for row in await self._store.get_jobs(list(by_run)):
            cached = by_run[row.job]
            cached.state_read(row.state)
            if (inputs := self._inputs(cached, row)) != cached.synced_inputs:
                computed = await self._compute(cached, row)
                is_final = row.state in TERMINAL_STATES
                self._enqueue(PendingStatus(cached.uid, computed, is_final))
                cached.status_synced(inputs)

    def _inputs(self, cached: CachedObject, row: JobRow) -> Hashable:
        """Return everything that the status depends on."""
        count_round = None
        if cached.latest.kind is Kind.WORKFLOW:
            count_round = self._clock.monotonic() // _COUNT_SECONDS
        blocked_by = self._blocked_by(cached, row)
        from_row = row.state, row.reason, row.attempts, row.losses, row.worker, row.due
        return *from_row, count_round, cached.latest.is_suspended, blocked_by

    def _blocked_by(self, cached: CachedObject, row: JobRow) -> StatusReason | None:
        """Return why no worker can claim its jobs, in whichever of its pools they are."""
        one = cached.latest
        if one.kind is not Kind.WORKFLOW:
            return self._blocking_reason(one.namespace, row.pool)
        reasons = [self._blocking_reason(one.namespace, pool) for pool in one.pools]
        return reasons[0] if reasons and all(reasons) else None

    async def _compute(self, cached: CachedObject, row: JobRow) -> Status:
        now, blocked_by = self._clock.now(), self._blocked_by(cached, row)
        if cached.latest.kind is Kind.WORKFLOW:
            progress = await self._store.count_states(row.job)
            failures = await self._store.list_failures(row.job, job_view.MAX_FAILURES)
            return status.workflow_status(cached, row, blocked_by, progress, failures, now)
        output = b""
        if row.state in TERMINAL_STATES:
            output = await self._store.read_output(row.job, last=job_view.TAIL_READ_BYTES)
        return status.job_status(cached, row, blocked_by, output, now)

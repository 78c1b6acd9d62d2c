"""The status sync: computes the status of every active object from its rows in the store.

It reads all rows in a loop and keeps no state of its own but what each status was computed from, so
the next round finds whatever an earlier one has missed. After a round it rests for four times as
long as the round took: however many objects there are, it uses a fifth of its time.

A status is that of `job_view`, and what only a cluster has. It is always complete: it replaces the
one before. Fields without a value are left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import structlog

from workron.core import errors
from workron.core.clock import Clock
from workron.core.ids import JobId
from workron.core.model.status import JobStatus, WorkflowStatus
from workron.core.plan import Kind
from workron.core.states import TERMINAL_STATES, State
from workron.scheduling import job_view
from workron.scheduling.job_view import Phase
from workron.store.api import ReadStore
from workron.store.types import JobFailure, JobRow
from workron_controller.jobs.cache import CachedObject, ObjectCache
from workron_controller.jobs.status_writer import PendingStatus
from workron_controller.kube import conditions
from workron_controller.kube.conditions import ConditionValue, StatusReason

BlockingReason = Callable[[str, str], StatusReason | None]
"""Why no worker can claim the jobs of a namespace and pool, if none can."""


Status: TypeAlias = dict[str, Any]

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
                rejected = rejected_status(cached, cached.rejection, self._clock.now())
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
            blocked_by = self._blocked_by(cached, row)
            if (inputs := self._inputs(cached, row, blocked_by)) != cached.synced_inputs:
                computed = await self._compute(cached, row, blocked_by)
                is_final = row.state in TERMINAL_STATES
                self._enqueue(PendingStatus(cached.uid, computed, is_final))
                cached.status_synced(inputs)

    def _blocked_by(self, cached: CachedObject, row: JobRow) -> StatusReason | None:
        """Return why no worker can claim its jobs, in whichever of its pools they are."""
        one = cached.latest
        if one.kind is not Kind.WORKFLOW:
            return self._blocking_reason(one.namespace, row.pool)
        reasons = [self._blocking_reason(one.namespace, pool) for pool in one.pools]
        return reasons[0] if reasons and all(reasons) else None

    def _inputs(
        self, cached: CachedObject, row: JobRow, blocked_by: StatusReason | None
    ) -> Hashable:
        """Return everything that the status depends on."""
        count_round = None
        if cached.latest.kind is Kind.WORKFLOW:
            count_round = self._clock.monotonic() // _COUNT_SECONDS
        from_row = row.state, row.reason, row.attempts, row.losses, row.worker, row.due
        return *from_row, count_round, cached.latest.is_suspended, blocked_by

    async def _compute(
        self, cached: CachedObject, row: JobRow, blocked_by: StatusReason | None
    ) -> Status:
        now = self._clock.now()
        if cached.latest.kind is Kind.WORKFLOW:
            progress = await self._store.count_states(row.job)
            failures = await self._store.list_failures(row.job, job_view.MAX_FAILURES)
            return workflow_status(cached, row, blocked_by, progress, failures, now)
        output = b""
        if row.state in TERMINAL_STATES:
            output = await self._store.read_output(row.job, last=job_view.TAIL_READ_BYTES)
        return job_status(cached, row, blocked_by, output, now)


def job_status(
    cached: CachedObject,
    row: JobRow,
    blocked_by: StatusReason | None,
    output: bytes,
    now: datetime,
) -> Status:
    """Return the status of a Job; `blocked_by` is why no worker can claim it while it is queued."""
    phase = _blocked_phase(job_view.phase_of(row), blocked_by)
    return _for_cluster(cached, job_view.job_status(row, output, phase, now), now)


def workflow_status(
    cached: CachedObject,
    row: JobRow,
    blocked_by: StatusReason | None,
    progress: Mapping[State, int],
    failures: Sequence[JobFailure],
    now: datetime,
) -> Status:
    """Return the status of a Workflow; `blocked_by` is why no worker can claim any of its jobs."""
    is_suspended = cached.latest.is_suspended
    phase = job_view.workflow_phase(
        row, progress, is_suspended=is_suspended, is_blocked=blocked_by is not None
    )
    phase = _blocked_phase(phase, blocked_by)
    shown = job_view.workflow_status(row, progress, failures, phase, now)
    return _for_cluster(cached, shown, now)


def rejected_status(cached: CachedObject, reason: StatusReason, now: datetime) -> Status:
    """Return the status of an object that cannot be run."""
    values = [
        ConditionValue("Accepted", holds=False, reason=reason.reason, message=reason.message),
        ConditionValue("Stalled", holds=True, reason=reason.reason, message=reason.message),
    ]
    return {
        "phase": State.WAITING,
        "reason": reason.reason,
        "message": reason.message,
        **_with_conditions(cached, values, cached.latest.generation, now),
    }


def _blocked_phase(phase: Phase, blocked_by: StatusReason | None) -> Phase:
    if blocked_by is None or phase.state is not State.QUEUED:
        return phase
    return Phase(State.WAITING, blocked_by.reason, blocked_by.message)


def _for_cluster(cached: CachedObject, shown: JobStatus | WorkflowStatus, now: datetime) -> Status:
    values = [
        ConditionValue(one.type, one.status == "True", one.reason, one.message)
        for one in shown.conditions
    ]
    times = {"startedAt": shown.started_at, "finishedAt": shown.finished_at}
    return (
        shown.as_manifest()
        | {name: conditions.format_time(time) for name, time in times.items() if time}
        | _with_conditions(cached, values, cached.submitted_generation, now)
    )


def _with_conditions(
    cached: CachedObject, values: Sequence[ConditionValue], generation: int, now: datetime
) -> Status:
    """Return the observed generation and the conditions, each with its transition time."""
    before = cached.status.get("conditions")
    merged = conditions.merge_conditions(
        values, before if isinstance(before, list) else (), generation, now
    )
    return {"observedGeneration": generation, "conditions": merged}

"""The status of an object in the cluster: that of `job_view`, and what only a cluster has.

A status is always complete: it replaces the one before. Fields without a value are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from workron.core.states import State
from workron.scheduling import job_view
from workron.scheduling.job_view import Phase
from workron_controller.kube import conditions
from workron_controller.kube.conditions import ConditionValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from workron.core.model.status import JobStatus, WorkflowStatus
    from workron.store.types import JobFailure, JobRow
    from workron_controller.jobs.cache import CachedObject
    from workron_controller.kube.conditions import StatusReason


Status: TypeAlias = dict[str, Any]


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
    generation = cached.latest.generation
    return {
        "phase": State.WAITING,
        "reason": reason.reason,
        "message": reason.message,
        "observedGeneration": generation,
        "conditions": conditions.merge_conditions(values, _conditions(cached), generation, now),
    }


def _blocked_phase(phase: Phase, blocked_by: StatusReason | None) -> Phase:
    if blocked_by is None or phase.state is not State.QUEUED:
        return phase
    return Phase(State.WAITING, blocked_by.reason, blocked_by.message)


def _for_cluster(cached: CachedObject, shown: JobStatus | WorkflowStatus, now: datetime) -> Status:
    """Add the generation, and since when each condition holds."""
    values = [
        ConditionValue(one.type, one.status == "True", one.reason, one.message)
        for one in shown.conditions
    ]
    times = {"startedAt": shown.started_at, "finishedAt": shown.finished_at}
    generation = cached.submitted_generation
    return shown.as_manifest() | {
        **{name: conditions.format_time(time) for name, time in times.items() if time},
        "observedGeneration": generation,
        "conditions": conditions.merge_conditions(values, _conditions(cached), generation, now),
    }


def _conditions(cached: CachedObject) -> Sequence[Any]:
    found = cached.status.get("conditions")
    return found if isinstance(found, list) else ()

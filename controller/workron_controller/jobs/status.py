"""The status of an object in the cluster: what `job_view` shows, and what only a cluster has.

It is the whole status each time; a field without a value is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from workron.core.states import State
from workron.scheduling import job_view
from workron.scheduling.job_view import Phase
from workron_controller.kube import conditions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from workron.core.model.status import JobStatus, WorkflowStatus
    from workron.store.types import JobFailure, JobRow, StateCounts
    from workron_controller.jobs.cache import CachedObject, StatusReason


Status: TypeAlias = dict[str, Any]

_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {}, 0)


def job_status(
    seen: CachedObject, row: JobRow, hint: StatusReason | None, output: bytes, now: datetime
) -> Status:
    """Return the status of a Job; `hint` is what keeps a queued one from being claimed."""
    phase = _hinted(job_view.phase_of(row), hint)
    return _for_cluster(seen, job_view.job_status(row, output, phase, now), now)


def workflow_status(
    seen: CachedObject,
    row: JobRow,
    hint: StatusReason | None,
    progress: StateCounts,
    failures: Sequence[JobFailure],
    now: datetime,
) -> Status:
    """Return the status of a Workflow; `hint` is what keeps all its jobs from being claimed."""
    phase = job_view.workflow_phase(
        row, progress.counts, is_suspended=seen.is_suspended, is_blocked=hint is not None
    )
    shown = job_view.workflow_status(row, progress.counts, failures, _hinted(phase, hint), now)
    return _for_cluster(seen, shown, now)


def refused_status(seen: CachedObject, refusal: StatusReason, now: datetime) -> Status:
    """Say why nothing is done for an object."""
    wanted = conditions.conditions_of_refusal(refusal)
    return {
        "phase": State.WAITING,
        "reason": refusal.reason,
        "message": refusal.message,
        "observedGeneration": seen.generation,
        "conditions": conditions.merge_conditions(wanted, _before(seen), seen.generation, now),
    }


def differs(status: Status, told: Mapping[str, Any]) -> bool:
    """Whether writing this would change what is told, defaults of the cluster left aside."""
    return _said(status) != _said(told)


def _hinted(phase: Phase, hint: StatusReason | None) -> Phase:
    if hint is None or phase.state is not State.QUEUED:
        return phase
    return Phase(State.WAITING, hint.reason, hint.message)


def _for_cluster(seen: CachedObject, shown: JobStatus | WorkflowStatus, now: datetime) -> Status:
    """Add what only a cluster has: generations, and since when each condition holds."""
    facts = [
        conditions.StatusFact(one.type, one.status == "True", one.reason, one.message)
        for one in shown.conditions
    ]
    times = {"startedAt": shown.started_at, "finishedAt": shown.finished_at}
    return shown.as_manifest() | {
        **{name: conditions.format_time(time) for name, time in times.items() if time},
        "observedGeneration": seen.heard,
        "conditions": conditions.merge_conditions(facts, _before(seen), seen.heard, now),
    }


def _said(status: Mapping[str, Any]) -> Status:
    return {name: value for name, value in status.items() if value not in _NOTHING}


def _before(seen: CachedObject) -> Sequence[Any]:
    given = seen.said.get("conditions")
    return given if isinstance(given, list) else ()

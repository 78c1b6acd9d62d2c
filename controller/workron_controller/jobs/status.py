"""What the status of an object is to say, from the row of its job. Pure; called by `look`.

It is the whole status each time; a field that has nothing to say is left out.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from workron.core.states import TERMINAL_STATES, Reason, State
from workron_controller.kube import conditions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from workron.store.types import JobFailure, JobRow, StateCounts
    from workron_controller.jobs.cache import CachedObject, StatusReason


Status: TypeAlias = dict[str, Any]

TAIL_BYTES: Final = 1024
MOST_FAILURES: Final = 10
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {}, 0)
_MESSAGE: Final = 1024


def job_status(
    seen: CachedObject, row: JobRow, hint: StatusReason | None, tail: str | None, now: datetime
) -> Status:
    """Say how a Job stands; `hint` is what keeps a queued one from being claimed."""
    return _base(seen, row, hint, now) | _filled(
        {
            "attempts": row.attempts,
            "failures": row.failures,
            "losses": row.losses,
            "exitCode": row.exit_code,
            "worker": row.worker,
            "outputTail": tail or None,
        }
    )


def workflow_status(
    seen: CachedObject,
    row: JobRow,
    hint: StatusReason | None,
    progress: StateCounts,
    failures: Sequence[JobFailure],
    now: datetime,
) -> Status:
    """Say how a Workflow stands: its jobs counted, and the first that failed.

    `hint` is what keeps all of them from being claimed.
    """
    row = _as_a_whole(seen, row, hint, progress)
    counts = {str(state).lower(): progress.counts.get(state, 0) for state in State}
    done = sum(progress.counts.get(state, 0) for state in TERMINAL_STATES)
    return _base(seen, row, hint, now) | {
        "jobs": {"total": sum(counts.values()), "done": done, **counts},
        "firstFailures": [_failure(one) for one in failures],
    }


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


def output_tail(data: bytes) -> str:
    """Give the end of some output as text that any terminal bears, a KiB of UTF-8 at most."""
    text = data[-TAIL_BYTES:].decode(errors="replace")
    shown = "".join(one for one in text if one.isprintable() or one in "\n\t")
    return shown.encode()[-TAIL_BYTES:].decode(errors="ignore")


def _as_a_whole(
    seen: CachedObject, row: JobRow, hint: StatusReason | None, progress: StateCounts
) -> JobRow:
    """Say of a workflow none of whose jobs runs what its own row does not: why that is so."""
    if row.state in TERMINAL_STATES or progress.counts.get(State.RUNNING):
        return row
    if seen.is_suspended:
        return dataclasses.replace(row, state=State.WAITING, reason=Reason.SUSPENDED)
    is_held_up = row.reason is Reason.UPSTREAM or hint is not None
    if is_held_up and progress.counts.get(State.QUEUED):
        return dataclasses.replace(row, state=State.QUEUED, reason=None)
    return row


def _base(
    seen: CachedObject, row: JobRow, hint: StatusReason | None, now: datetime
) -> dict[str, Any]:
    reason: str | None = row.reason
    state, message = row.state, row.message or _due(row)
    if hint is not None and state is State.QUEUED:
        state, reason, message = State.WAITING, hint.reason, hint.message
    wanted = conditions.conditions_of_state(state, reason, message)
    return _filled(
        {
            "phase": state,
            "reason": reason,
            "message": message and message[:_MESSAGE],
            "startedAt": row.started_at and conditions.format_time(row.started_at),
            "finishedAt": row.finished_at and conditions.format_time(row.finished_at),
            "observedGeneration": seen.heard,
            "conditions": conditions.merge_conditions(wanted, _before(seen), seen.heard, now),
        }
    )


def _due(row: JobRow) -> str | None:
    if row.due is None:
        return None
    what = "is tried again" if row.reason is Reason.BACKOFF else "starts"
    return f"{what} at {conditions.format_time(row.due)}"


def _failure(one: JobFailure) -> Mapping[str, Any]:
    return _filled(
        {
            "name": one.name,
            "index": one.index,
            "reason": one.reason,
            "message": one.message and one.message[:_MESSAGE],
            "exitCode": one.exit_code,
        }
    )


def _filled(fields: Status) -> Status:
    return {name: value for name, value in fields.items() if value is not None}


def _said(status: Mapping[str, Any]) -> Status:
    return {name: value for name, value in status.items() if value not in _NOTHING}


def _before(seen: CachedObject) -> Sequence[Any]:
    given = seen.said.get("conditions")
    return given if isinstance(given, list) else ()

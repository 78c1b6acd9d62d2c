"""`workron get -o json` and the status in the cluster agree for every state and reason."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import REASONS, Reason, State
from workron.scheduling import job_view
from workron.store.types import JobFailure, JobRow, RunRow
from workron_controller.jobs import status_sync
from workron_controller.jobs.cache import CachedObject, ObservedObject

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_NO_REASON: list[Reason | None] = [None]
_CASES = [
    (state, reason) for state in State for reason in sorted(REASONS.get(state, ())) or _NO_REASON
]


def _row(state: State, reason: Reason | None, kind: Kind = Kind.JOB, job: int = 1) -> JobRow:
    is_due = reason in {Reason.BACKOFF, Reason.SCHEDULED}
    return JobRow(
        job=JobId(job), run=JobId(1), kind=kind, name="a", index=None, group_id=None, state=state,
        reason=reason, message=None if is_due else "why", priority=0, pool="default", attempts=2,
        failures=1, losses=1, exit_code=3, worker="w", due=NOON if is_due else None,
        started_at=NOON, finished_at=NOON,
    )  # fmt: skip


def _run(kind: Kind) -> RunRow:
    return RunRow(JobId(1), JobId(9), "default", kind, "a", uuid.uuid4(), "digest", NOON, {})


def _cached(kind: Kind, *, is_suspended: bool = False) -> CachedObject:
    return CachedObject(
        ObservedObject(uuid.UUID(int=1), kind, "default", "a", 1, is_suspended=is_suspended)
    )


def _shared(shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out the generation and the transition times, which only a cluster has."""
    only = ("lastTransitionTime", "observedGeneration")
    conditions = [
        {name: value for name, value in one.items() if name not in only}
        for one in shown["conditions"]
    ]
    rest = {name: value for name, value in shown.items() if name != "observedGeneration"}
    return rest | {"conditions": conditions}


@pytest.mark.parametrize(("state", "reason"), _CASES)
def test_job_has_the_same_status_in_both_for_every_state_and_reason(
    state: State, reason: Reason | None
) -> None:
    output = b"\x1b[31mred \x1b[0m ok"
    row = _row(state, reason)
    printed = job_view.job_object(_run(Kind.JOB), row, {"command": "x"}, output)["status"]
    written = status_sync.job_status(_cached(Kind.JOB), row, None, output, NOON)
    assert _shared(written) == _shared(printed)
    assert printed["outputTail"] == "red  ok"


@pytest.mark.parametrize(("state", "reason"), _CASES)
def test_workflow_has_the_same_status_in_both_for_every_state_and_reason(
    state: State, reason: Reason | None
) -> None:
    own, task = _row(State.WAITING, Reason.UPSTREAM, Kind.WORKFLOW), _row(state, reason, job=2)
    printed = job_view.workflow_object(_run(Kind.WORKFLOW), [own, task], {})["status"]
    failures = [
        JobFailure(row.job, row.name, row.index, row.reason, row.message, row.exit_code)
        for row in [task]
        if row.state is State.FAILED and row.reason is not None
    ]
    cached = _cached(Kind.WORKFLOW, is_suspended=reason is Reason.SUSPENDED)
    written = status_sync.workflow_status(cached, own, None, {state: 1}, failures, NOON)
    assert _shared(written) == _shared(printed)


def test_job_is_complete_in_both_when_it_was_not_needed() -> None:
    row = _row(State.SKIPPED, Reason.NOT_NEEDED)
    printed = job_view.job_object(_run(Kind.JOB), row, {"command": "x"}, b"")["status"]
    written = status_sync.job_status(_cached(Kind.JOB), row, None, b"", NOON)
    for shown in (printed, written):
        assert [one["type"] for one in shown["conditions"]] == ["Accepted", "Complete"]

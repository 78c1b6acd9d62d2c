"""The status that is computed from the row of a job."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.store.types import JobFailure, JobRow
from workron_controller.jobs import status_sync
from workron_controller.jobs.cache import CachedObject, ObservedObject
from workron_controller.kube import conditions
from workron_controller.kube.conditions import StatusReason

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BLOCKED = StatusReason("NamespaceNotEnabled", "kubectl create rolebinding …")


def _cached(**status: Any) -> CachedObject:
    seen = CachedObject(ObservedObject(UUID(int=1), Kind.JOB, "default", "job", 2, status=status))
    seen.submitted(JobId(1), 2)
    return seen


def _row(state: State = State.QUEUED, reason: Reason | None = None, **about: Any) -> JobRow:
    fields = dict.fromkeys(
        ("index", "group_id", "message", "exit_code", "worker", "due", "started_at", "finished_at")
    )
    counts = dict.fromkeys(("priority", "attempts", "failures", "losses"), 0)
    return JobRow(
        **{
            "job": JobId(1), "run": JobId(1), "kind": Kind.JOB, "name": "job", "pool": "default",
            "state": state, "reason": reason, **fields, **counts, **about,
        }
    )  # fmt: skip


def _conditions(status: status_sync.Status) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


@pytest.mark.parametrize(
    ("state", "reason", "wanted"),
    [
        (State.WAITING, Reason.UPSTREAM, {"Reconciling": ("True", "Upstream")}),
        (
            State.WAITING,
            Reason.SUSPENDED,
            {"Suspended": ("True", "Suspended"), "Reconciling": ("True", "Suspended")},
        ),
        (State.QUEUED, None, {"Reconciling": ("True", "Queued")}),
        (State.RUNNING, None, {"Reconciling": ("True", "Running")}),
        (State.SUCCEEDED, None, {"Complete": ("True", "Succeeded")}),
        (
            State.FAILED,
            Reason.EXIT_CODE,
            {"Failed": ("True", "ExitCode"), "Stalled": ("True", "ExitCode")},
        ),
        (
            State.CANCELLED,
            None,
            {"Failed": ("True", "Cancelled"), "Stalled": ("True", "Cancelled")},
        ),
        (
            State.SKIPPED,
            Reason.UPSTREAM_FAILED,
            {"Failed": ("True", "UpstreamFailed"), "Stalled": ("True", "UpstreamFailed")},
        ),
        (
            State.SKIPPED,
            Reason.UPSTREAM_CANCELLED,
            {"Failed": ("True", "UpstreamCancelled"), "Stalled": ("True", "UpstreamCancelled")},
        ),
        (State.SKIPPED, Reason.NOT_NEEDED, {"Complete": ("True", "NotNeeded")}),
    ],
)
def test_conditions_are_those_that_tools_wait_for(
    state: State, reason: Reason | None, wanted: dict[str, tuple[str, str]]
) -> None:
    status = status_sync.job_status(_cached(), _row(state, reason), None, b"", NOON)
    assert _conditions(status) == {"Accepted": ("True", "Stored")} | wanted
    assert (status["phase"], status.get("reason")) == (state, reason)


def test_status_has_every_field_of_the_row() -> None:
    row = _row(
        State.FAILED, Reason.EXIT_CODE, message="it failed", attempts=3, failures=2, losses=1,
        exit_code=7, worker="pod-1", started_at=NOON, finished_at=NOON + timedelta(minutes=1),
    )  # fmt: skip
    status = status_sync.job_status(_cached(), row, None, b"bye\n", NOON)
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        "phase": "Failed", "reason": "ExitCode", "message": "it failed", "attempts": 3,
        "failures": 2, "losses": 1, "exitCode": 7, "worker": "pod-1", "outputTail": "bye\n",
        "startedAt": "2026-01-01T12:00:00Z", "finishedAt": "2026-01-01T12:01:00Z",
        "observedGeneration": 2,
    }  # fmt: skip


def test_condition_keeps_its_transition_time_while_it_holds() -> None:
    first = status_sync.job_status(_cached(), _row(State.QUEUED), None, b"", NOON)
    later = NOON + timedelta(hours=1)
    second = status_sync.job_status(_cached(**first), _row(State.RUNNING), None, b"", later)
    times = {one["type"]: one["lastTransitionTime"] for one in second["conditions"]}
    assert times == {
        "Accepted": "2026-01-01T12:00:00Z", "Reconciling": "2026-01-01T12:00:00Z",
    }  # fmt: skip
    third = status_sync.job_status(_cached(**second), _row(State.SUCCEEDED), None, b"", later)
    assert {one["type"]: one["lastTransitionTime"] for one in third["conditions"]} == {
        "Accepted": "2026-01-01T12:00:00Z", "Complete": "2026-01-01T13:00:00Z",
    }  # fmt: skip


def test_queued_job_is_waiting_with_the_reason_when_no_worker_can_claim_it() -> None:
    status = status_sync.job_status(_cached(), _row(State.QUEUED), BLOCKED, b"", NOON)
    assert (status["phase"], status["reason"], status["message"]) == (
        "Waiting",
        BLOCKED.reason,
        BLOCKED.message,
    )
    running = status_sync.job_status(_cached(), _row(State.RUNNING), BLOCKED, b"", NOON)
    assert running["phase"] == "Running"


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (Reason.BACKOFF, "retries at 2026-01-01T12:00:00Z"),
        (Reason.SCHEDULED, "starts at 2026-01-01T12:00:00Z"),
    ],
)
def test_message_has_the_time_when_the_job_waits_for_one(reason: Reason, message: str) -> None:
    status = status_sync.job_status(
        _cached(), _row(State.WAITING, reason, due=NOON), None, b"", NOON
    )
    assert status["message"] == message


def test_workflow_has_counts_and_bounded_failures() -> None:
    progress = {State.SUCCEEDED: 5, State.FAILED: 2, State.QUEUED: 1}
    failures = [JobFailure(JobId(2), "a", None, Reason.EXIT_CODE, "x" * 5000, 3)]
    row = _row(State.RUNNING, kind=Kind.WORKFLOW)
    status = status_sync.workflow_status(_cached(), row, None, progress, failures, NOON)
    assert status["jobs"] == {
        "total": 8, "done": 7, "waiting": 0, "queued": 1, "running": 0, "succeeded": 5, "failed": 2,
        "cancelled": 0, "skipped": 0,
    }  # fmt: skip
    [failure] = status["firstFailures"]
    assert failure.keys() == {"name", "reason", "message", "exitCode"}
    assert len(failure["message"]) == 1024


def test_rejected_object_is_stalled_with_the_reason() -> None:
    status = status_sync.rejected_status(
        _cached(), StatusReason("CycleDetected", "a -> b -> a"), NOON
    )
    assert _conditions(status) == {
        "Accepted": ("False", "CycleDetected"), "Stalled": ("True", "CycleDetected"),
    }  # fmt: skip
    assert (status["phase"], status["message"]) == ("Waiting", "a -> b -> a")


def test_statuses_differ_only_beyond_empty_fields() -> None:
    status = status_sync.job_status(_cached(), _row(), None, b"", NOON)
    assert conditions.statuses_differ(status, {})
    assert not conditions.statuses_differ(status, status | {"exitCode": None, "firstFailures": []})
    assert conditions.statuses_differ(status | {"phase": "Running"}, status)
    assert conditions.statuses_differ(status, status | {"worker": "pod-1"})


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"hello\n", "hello\n"),
        (b"\x1b[31mred\x1b[0m\ttab\r\n", "red\ttab\n"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"x" * 5000, "x" * 1024),
        (("ü" * 5000).encode(), "ü" * 512),
    ],
    ids=["plain", "control", "no text", "long", "wide"],
)
def test_output_tail_is_bounded_text_without_control_sequences(data: bytes, shown: str) -> None:
    status = status_sync.job_status(_cached(), _row(State.SUCCEEDED), None, data, NOON)
    assert status["outputTail"] == shown

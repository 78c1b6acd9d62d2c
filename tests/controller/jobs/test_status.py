"""What an object says of its job: a table of rows, and what is told."""

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
HINT = StatusReason("NamespaceNotEnabled", "kubectl create rolebinding …")


def _seen(**said: Any) -> CachedObject:
    seen = CachedObject(ObservedObject(UUID(int=1), Kind.JOB, "default", "job", 2, status=said))
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


def _conditions(said: status_sync.Status) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in said["conditions"]}


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
def test_conditions_say_what_tools_wait_for(
    state: State, reason: Reason | None, wanted: dict[str, tuple[str, str]]
) -> None:
    said = status_sync.job_status(_seen(), _row(state, reason), None, b"", NOON)
    assert _conditions(said) == {"Accepted": ("True", "Stored")} | wanted
    assert (said["phase"], said.get("reason")) == (state, reason)


def test_all_that_a_row_has_is_told() -> None:
    row = _row(
        State.FAILED, Reason.EXIT_CODE, message="it said no", attempts=3, failures=2, losses=1,
        exit_code=7, worker="pod-1", started_at=NOON, finished_at=NOON + timedelta(minutes=1),
    )  # fmt: skip
    said = status_sync.job_status(_seen(), row, None, b"bye\n", NOON)
    assert {name: value for name, value in said.items() if name != "conditions"} == {
        "phase": "Failed", "reason": "ExitCode", "message": "it said no", "attempts": 3,
        "failures": 2, "losses": 1, "exitCode": 7, "worker": "pod-1", "outputTail": "bye\n",
        "startedAt": "2026-01-01T12:00:00Z", "finishedAt": "2026-01-01T12:01:00Z",
        "observedGeneration": 2,
    }  # fmt: skip


def test_condition_that_still_holds_keeps_its_time() -> None:
    first = status_sync.job_status(_seen(), _row(State.QUEUED), None, b"", NOON)
    later = NOON + timedelta(hours=1)
    second = status_sync.job_status(_seen(**first), _row(State.RUNNING), None, b"", later)
    times = {one["type"]: one["lastTransitionTime"] for one in second["conditions"]}
    assert times == {
        "Accepted": "2026-01-01T12:00:00Z", "Reconciling": "2026-01-01T12:00:00Z",
    }  # fmt: skip
    third = status_sync.job_status(_seen(**second), _row(State.SUCCEEDED), None, b"", later)
    assert {one["type"]: one["lastTransitionTime"] for one in third["conditions"]} == {
        "Accepted": "2026-01-01T12:00:00Z", "Complete": "2026-01-01T13:00:00Z",
    }  # fmt: skip


def test_queued_job_that_nobody_can_claim_waits_and_says_why() -> None:
    said = status_sync.job_status(_seen(), _row(State.QUEUED), HINT, b"", NOON)
    assert (said["phase"], said["reason"], said["message"]) == ("Waiting", *HINT_WORDS)
    running = status_sync.job_status(_seen(), _row(State.RUNNING), HINT, b"", NOON)
    assert running["phase"] == "Running"


HINT_WORDS = (HINT.reason, HINT.message)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (Reason.BACKOFF, "retries at 2026-01-01T12:00:00Z"),
        (Reason.SCHEDULED, "starts at 2026-01-01T12:00:00Z"),
    ],
)
def test_what_waits_for_a_time_says_which(reason: Reason, message: str) -> None:
    said = status_sync.job_status(_seen(), _row(State.WAITING, reason, due=NOON), None, b"", NOON)
    assert said["message"] == message


def test_workflow_is_rolled_up_within_bounds() -> None:
    progress = {State.SUCCEEDED: 5, State.FAILED: 2, State.QUEUED: 1}
    failures = [JobFailure(JobId(2), "a", None, Reason.EXIT_CODE, "x" * 5000, 3)]
    row = _row(State.RUNNING, kind=Kind.WORKFLOW)
    said = status_sync.workflow_status(_seen(), row, None, progress, failures, NOON)
    assert said["jobs"] == {
        "total": 8, "done": 7, "waiting": 0, "queued": 1, "running": 0, "succeeded": 5, "failed": 2,
        "cancelled": 0, "skipped": 0,
    }  # fmt: skip
    [failure] = said["firstFailures"]
    assert failure.keys() == {"name", "reason", "message", "exitCode"}
    assert len(failure["message"]) == 1024


def test_refused_object_says_why_and_is_stalled() -> None:
    said = status_sync.rejected_status(_seen(), StatusReason("CycleDetected", "a -> b -> a"), NOON)
    assert _conditions(said) == {
        "Accepted": ("False", "CycleDetected"), "Stalled": ("True", "CycleDetected"),
    }  # fmt: skip
    assert (said["phase"], said["message"]) == ("Waiting", "a -> b -> a")


def test_what_was_told_is_not_told_again() -> None:
    said = status_sync.job_status(_seen(), _row(), None, b"", NOON)
    assert conditions.statuses_differ(said, {})
    assert not conditions.statuses_differ(said, said | {"exitCode": None, "firstFailures": []})
    assert conditions.statuses_differ(said | {"phase": "Running"}, said)
    assert conditions.statuses_differ(said, said | {"worker": "pod-1"})


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
def test_tail_is_text_that_any_terminal_bears(data: bytes, shown: str) -> None:
    said = status_sync.job_status(_seen(), _row(State.SUCCEEDED), None, data, NOON)
    assert said["outputTail"] == shown

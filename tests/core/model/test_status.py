"""Status: its fields and their form in a custom resource."""

from datetime import UTC, datetime

from workron.core.model.status import (
    JobCounts,
    JobStatus,
    StatusCondition,
    TaskFailure,
    WorkerPoolStatus,
    WorkflowStatus,
)
from workron.core.states import State

_NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_job_status_has_the_fields_of_the_custom_resource() -> None:
    complete = StatusCondition(
        type="Complete", status="True", reason="Succeeded", last_transition_time=_NOON
    )
    status = JobStatus(
        phase=State.SUCCEEDED, exit_code=0, attempts=2, finished_at=_NOON, conditions=(complete,)
    )
    assert status.as_manifest() == {
        "phase": "Succeeded",
        "attempts": 2,
        "exitCode": 0,
        "finishedAt": "2026-01-31T12:00:00Z",
        "conditions": [
            {
                "type": "Complete",
                "status": "True",
                "reason": "Succeeded",
                "lastTransitionTime": "2026-01-31T12:00:00Z",
            }
        ],
    }


def test_workflow_status_counts_jobs_and_names_the_first_failures() -> None:
    failure = TaskFailure(name="load", index=3, reason="ExitCode", exit_code=2)
    status = WorkflowStatus(
        phase=State.FAILED, jobs=JobCounts(total=2, failed=1), first_failures=(failure,)
    )
    shown = status.as_manifest()
    assert shown["jobs"] == {"total": 2, "failed": 1}
    assert shown["firstFailures"] == [
        {"name": "load", "index": 3, "reason": "ExitCode", "exitCode": 2}
    ]


def test_condition_has_no_time_when_the_controller_has_not_seen_the_object() -> None:
    unseen = StatusCondition(type="Reconciling", status="True", reason="NotObservedYet")
    assert JobStatus(conditions=(unseen,)).as_manifest()["conditions"] == [
        {"type": "Reconciling", "status": "True", "reason": "NotObservedYet"}
    ]


def test_status_cuts_a_text_that_is_too_long_for_a_cluster() -> None:
    status = JobStatus(message="x" * 1025, output_tail="y" * 1024)
    assert status.message == "x" * 1023 + "…"
    assert status.output_tail == "y" * 1024


def test_pool_status_has_the_fields_of_the_scale_subresource() -> None:
    status = WorkerPoolStatus(
        desired_replicas=3, replicas=2, ready_replicas=1, selector="workron.dev/pool=gpu"
    )
    assert status.as_manifest() == {
        "desiredReplicas": 3,
        "replicas": 2,
        "readyReplicas": 1,
        "selector": "workron.dev/pool=gpu",
    }

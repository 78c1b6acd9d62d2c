"""Status: what the system tells, in the shape that it is shown."""

from datetime import UTC, datetime

from workron.core.model.status import (
    JobCounts,
    JobStatus,
    StatusCondition,
    TaskFailure,
    WorkflowStatus,
)
from workron.core.states import State

_NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_job_status_is_shown_in_the_words_of_the_custom_resource() -> None:
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

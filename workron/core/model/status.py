"""The status of a Job, a Workflow and a WorkerPool. A status in a manifest is ignored."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from workron.core.model import base
from workron.core.model.base import Timestamp
from workron.core.states import State

Phase = Annotated[State, base.LAX]
Count = Annotated[int, Field(ge=0)]

_MAX_TEXT: Final = 1024


def _cut(value: object) -> object:
    """Cut a text at the limit; a cluster would reject the whole status for it."""
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        return value[: _MAX_TEXT - 1] + "…"
    return value


Text = Annotated[str, BeforeValidator(_cut), Field(max_length=_MAX_TEXT)]


class StatusCondition(base.Record):
    """A condition in the form of the Kubernetes API."""

    type: Text = Field(
        description="Type: Accepted, Reconciling, Suspended, Complete, Failed, Stalled or Ready."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    reason: Text = Field(description="Why, in one word.")
    message: Text = Field("", description="Why, in a sentence.")
    last_transition_time: Timestamp | None = Field(
        None,
        description="When status last changed. Absent until the controller has seen the object.",
    )
    observed_generation: Count | None = Field(
        None, description="Generation of the object that this condition is about."
    )


Conditions = Annotated[tuple[StatusCondition, ...], base.LAX, Field(max_length=16)]
_OBSERVED: Final = Field(None, description="Generation of the object that this status is about.")


class _Status(base.Record):
    phase: Phase = Field(State.WAITING, description="Current state.")
    reason: Text | None = Field(None, description="Why it is in this phase, in one word.")
    message: Text | None = Field(None, description="Why it is in this phase, in a sentence.")
    started_at: Timestamp | None = Field(None, description="When its first attempt started.")
    finished_at: Timestamp | None = Field(None, description="When it ended.")
    observed_generation: Count | None = _OBSERVED
    conditions: Conditions = Field((), description="Conditions, for tools such as kubectl wait.")


class JobStatus(_Status):
    """Status of a job."""

    attempts: Count = Field(0, description="Number of attempts, including the current one.")
    failures: Count = Field(0, description="How often its command failed. See maxAttempts.")
    losses: Count = Field(0, description="How often its worker was lost. See maxWorkerLosses.")
    exit_code: int | None = Field(None, description="Exit code of the last attempt that ended.")
    worker: Text | None = Field(None, description="Worker of the current or last attempt.")
    output_tail: Text | None = Field(None, description="The last KiB of the output.")


class JobCounts(base.Record):
    """Number of jobs of a workflow in each state."""

    total: Count = Field(0, description="All jobs. Each element of an array counts as one.")
    done: Count = Field(0, description="Jobs that have ended, in whichever state.")
    waiting: Count = Field(0, description="Jobs that cannot start yet.")
    queued: Count = Field(0, description="Jobs that a worker can claim now.")
    running: Count = Field(0, description="Jobs that are running.")
    succeeded: Count = Field(0, description="Jobs that succeeded.")
    failed: Count = Field(0, description="Jobs that failed.")
    cancelled: Count = Field(0, description="Jobs that were cancelled.")
    skipped: Count = Field(
        0, description="Jobs that were skipped because of how their upstreams ended."
    )


class TaskFailure(base.Record):
    """A failed job of a workflow."""

    name: Text = Field(description="Name of the task.")
    index: Count | None = Field(None, description="Index of the element, if the task is an array.")
    reason: Text | None = Field(None, description="Why it failed, in one word.")
    message: Text | None = Field(None, description="Why it failed, in a sentence.")
    exit_code: int | None = Field(None, description="Exit code of the last attempt.")


class WorkflowStatus(_Status):
    """Status of a workflow."""

    jobs: JobCounts = Field(JobCounts(), description="Number of its jobs in each state.")
    first_failures: base.ListOf[TaskFailure] = Field(
        (), max_length=10, description="The first jobs that failed, at most 10."
    )


class WorkerPoolStatus(base.Record):
    """Status of a worker pool."""

    desired_replicas: Count = Field(
        0, description="Number of workers that the pool should have now."
    )
    replicas: Count = Field(0, description="Number of workers that the pool has.")
    ready_replicas: Count = Field(0, description="Number of workers that can claim jobs.")
    busy: Count = Field(0, description="Number of slots that run a job.")
    queued: Count = Field(0, description="Jobs of the pool that a worker can claim now.")
    selector: Text | None = Field(
        None, description="Label selector of the pods, for the scale subresource."
    )
    observed_generation: Count | None = _OBSERVED
    conditions: Conditions = Field(
        (), description="Ready, and problems with the image, quota, database or connection budget."
    )


def _drop_given(value: object) -> object:
    return value if isinstance(value, _Status | WorkerPoolStatus) else None


FromSystem = BeforeValidator(_drop_given)
"""Drops a status that a manifest contains, as only the controller writes one."""

"""What the system tells of a Job and of a Workflow; never read from a manifest.

Made by whoever shows an object: the status writer of the cluster, `workron get`, the REST door.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from workron.core.model import record
from workron.core.model.moment import Moment
from workron.core.states import State

Phase = Annotated[State, record.LAX]
Count = Annotated[int, Field(ge=0)]


class StatusCondition(record.Record):
    """One condition, as Kubernetes' own tools read it."""

    type: str = Field(description="What it is about: Complete, Failed, Stalled, Reconciling.")
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    reason: str = Field(description="One word that says why.")
    message: str = Field("", description="The same for a person.")
    last_transition_time: Moment = Field(description="When status last changed.")
    observed_generation: Count | None = Field(
        None, description="The generation of the object that this is about."
    )


Conditions = Annotated[tuple[StatusCondition, ...], record.LAX]


class _Status(record.Record):
    phase: Phase = Field(State.WAITING, description="Where it stands.")
    reason: str | None = Field(None, description="Why, in one word, where the phase is not all.")
    message: str | None = Field(None, description="Why, for a person.")
    started_at: Moment | None = Field(None, description="When its first attempt began.")
    finished_at: Moment | None = Field(None, description="When it reached its end.")
    observed_generation: Count | None = Field(
        None, description="The generation of the object that this status is about."
    )
    conditions: Conditions = Field((), description="The same for Kubernetes' tools.")


class JobStatus(_Status):
    """Where one command stands."""

    attempts: Count = Field(0, description="How often it was claimed.")
    failures: Count = Field(0, description="How often its command failed; see maxAttempts.")
    losses: Count = Field(0, description="How often its worker vanished; see maxLosses.")
    exit_code: int | None = Field(None, description="Exit code of the last attempt that ended.")
    worker: str | None = Field(None, description="The worker of the current or last attempt.")
    output_tail: str | None = Field(None, description="The last KiB of what the command wrote.")


class JobCounts(record.Record):
    """How many jobs of a workflow are in each state."""

    total: Count = Field(0, description="All its jobs, elements of arrays counted one by one.")
    waiting: Count = Field(0, description="Jobs that wait for something.")
    queued: Count = Field(0, description="Jobs that a worker may claim now.")
    running: Count = Field(0, description="Jobs that run now.")
    succeeded: Count = Field(0, description="Jobs that ended well.")
    failed: Count = Field(0, description="Jobs that ended badly.")
    cancelled: Count = Field(0, description="Jobs that were cancelled.")
    skipped: Count = Field(0, description="Jobs with nothing left to do.")


class TaskFailure(record.Record):
    """One job of a workflow that failed."""

    name: str = Field(description="Name of the task.")
    index: Count | None = Field(None, description="Which element, if the task is an array.")
    reason: str | None = Field(None, description="Why, in one word.")
    message: str | None = Field(None, description="Why, for a person.")
    exit_code: int | None = Field(None, description="Exit code of its last attempt.")


class WorkflowStatus(_Status):
    """Where a DAG stands."""

    jobs: JobCounts = Field(JobCounts(), description="Its jobs, counted by state.")
    first_failures: Annotated[tuple[TaskFailure, ...], record.LAX] = Field(
        (), max_length=10, description="The first jobs that failed."
    )


def _told(value: object) -> object:
    return value if isinstance(value, _Status) else None


FromSystem = BeforeValidator(_told)
"""Drops a status that a manifest brings along: only the system tells one."""

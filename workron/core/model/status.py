"""What the system tells of a Job, a Workflow and a WorkerPool; never read from a manifest.

Made by whoever shows an object: the status writer of the cluster, `workron get`, the REST door.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from workron.core.model import base
from workron.core.model.base import Timestamp
from workron.core.states import State

Phase = Annotated[State, base.LAX]
Count = Annotated[int, Field(ge=0)]

_LONGEST: Final = 1024


def _cut(value: object) -> object:
    """Shorten a text that is too long: what a cluster refuses to store, nobody is told."""
    if isinstance(value, str) and len(value) > _LONGEST:
        return value[: _LONGEST - 1] + "…"
    return value


Text = Annotated[str, BeforeValidator(_cut), Field(max_length=_LONGEST)]


class StatusCondition(base.Record):
    """One condition, as Kubernetes' own tools read it."""

    type: Text = Field(
        description="What it is about: Complete, Failed, Stalled, Reconciling, Accepted, Ready."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    reason: Text = Field(description="One word that says why.")
    message: Text = Field("", description="The same for a person.")
    last_transition_time: Timestamp | None = Field(
        None, description="When status last changed; absent before the first look at the object."
    )
    observed_generation: Count | None = Field(
        None, description="The generation of the object that this is about."
    )


Conditions = Annotated[tuple[StatusCondition, ...], base.LAX, Field(max_length=16)]
_OBSERVED: Final = Field(
    None, description="The generation of the object that this status is about."
)
_CONDITIONS: Final = Field((), description="The same for Kubernetes' tools.")


class _Status(base.Record):
    phase: Phase = Field(State.WAITING, description="Where it stands.")
    reason: Text | None = Field(None, description="Why, in one word, where the phase is not all.")
    message: Text | None = Field(None, description="Why, for a person.")
    started_at: Timestamp | None = Field(None, description="When its first attempt began.")
    finished_at: Timestamp | None = Field(None, description="When it reached its end.")
    observed_generation: Count | None = _OBSERVED
    conditions: Conditions = _CONDITIONS


class JobStatus(_Status):
    """Where one command stands."""

    attempts: Count = Field(0, description="How often it was claimed.")
    failures: Count = Field(0, description="How often its command failed; see maxAttempts.")
    losses: Count = Field(0, description="How often its worker vanished; see maxWorkerLosses.")
    exit_code: int | None = Field(None, description="Exit code of the last attempt that ended.")
    worker: Text | None = Field(None, description="The worker of the current or last attempt.")
    output_tail: Text | None = Field(None, description="The last KiB of what the command wrote.")


class JobCounts(base.Record):
    """How many jobs of a workflow are in each state."""

    total: Count = Field(0, description="All its jobs, elements of arrays counted one by one.")
    done: Count = Field(0, description="Jobs that have reached an end, whichever.")
    waiting: Count = Field(0, description="Jobs that wait for something.")
    queued: Count = Field(0, description="Jobs that a worker may claim now.")
    running: Count = Field(0, description="Jobs that run now.")
    succeeded: Count = Field(0, description="Jobs that ended well.")
    failed: Count = Field(0, description="Jobs that ended badly.")
    cancelled: Count = Field(0, description="Jobs that were cancelled.")
    skipped: Count = Field(0, description="Jobs with nothing left to do.")


class TaskFailure(base.Record):
    """One job of a workflow that failed."""

    name: Text = Field(description="Name of the task.")
    index: Count | None = Field(None, description="Which element, if the task is an array.")
    reason: Text | None = Field(None, description="Why, in one word.")
    message: Text | None = Field(None, description="Why, for a person.")
    exit_code: int | None = Field(None, description="Exit code of its last attempt.")


class WorkflowStatus(_Status):
    """Where a DAG stands."""

    jobs: JobCounts = Field(JobCounts(), description="Its jobs, counted by state.")
    first_failures: Annotated[tuple[TaskFailure, ...], base.LAX] = Field(
        (), max_length=10, description="The first jobs that failed."
    )


class WorkerPoolStatus(base.Record):
    """How a pool stands."""

    desired_replicas: Count = Field(0, description="How many workers there should be now.")
    replicas: Count = Field(0, description="How many workers there are.")
    ready_replicas: Count = Field(0, description="How many of them can claim jobs.")
    busy: Count = Field(0, description="How many of their slots run a job.")
    queued: Count = Field(0, description="Jobs of the pool that a worker may claim now.")
    selector: Text | None = Field(
        None, description="Selects the pods of the pool, for the scale subresource."
    )
    observed_generation: Count | None = _OBSERVED
    conditions: Conditions = Field(
        (), description="Ready, and what is wrong: image, quota, database, connection budget."
    )


def _told(value: object) -> object:
    return value if isinstance(value, _Status | WorkerPoolStatus) else None


FromSystem = BeforeValidator(_told)
"""Drops a status that a manifest brings along: only the system tells one."""

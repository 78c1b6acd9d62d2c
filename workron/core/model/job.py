"""The kind Job: one command to run to completion."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from workron.core import form
from workron.core.model import record
from workron.core.model.command import CommandSpec
from workron.core.model.meta import Resource
from workron.core.model.moment import Moment
from workron.core.model.scalar import ObjectName, Priority, Seconds
from workron.core.model.status import FromSystem, JobStatus
from workron.core.plan import Kind
from workron.core.verdict import Condition

When = Literal[Condition.SUCCEEDED, Condition.FAILED, Condition.FINISHED]
"""Which ends of an upstream let a job go."""


class Dependency(record.Record):
    """Another object of the same namespace, whose end is waited for."""

    name: ObjectName = Field(description="Name of the Job or Workflow; it may not exist yet.")
    kind: Literal[Kind.JOB, Kind.WORKFLOW] = Field(Kind.JOB, description="Job or Workflow.")
    when: When = Field(
        Condition.SUCCEEDED, description="The end that lets this job go; Finished is any."
    )


class JobSpec(CommandSpec):
    """One command, when it may start, and what it waits for."""

    depends_on: Annotated[tuple[Dependency, ...], record.LAX] = Field(
        (), max_length=10_000, description="Jobs and Workflows that it waits for."
    )
    priority: Priority = Field(0, description="The greater goes first, within a pool.")
    start_after: Moment | None = Field(None, description="It does not start before this time.")
    suspend: bool = Field(default=False, description="While true it is not started.")
    cancel: bool = Field(default=False, description="True ends it, for good.")
    ttl_seconds_after_finished: Seconds | None = Field(
        None, description="The object is deleted this long after its end; default: never."
    )

    @model_validator(mode="after")
    def _waits_once(self) -> Self:
        seen = set()
        for upstream in self.depends_on:
            if (upstream.kind, upstream.name) in seen:
                raise record.refusal(
                    f"dependsOn has {upstream.kind} {form.shown(upstream.name)} twice"
                )
            seen.add((upstream.kind, upstream.name))
        return self


class Job(Resource):
    """One command to run to completion."""

    kind: Literal["Job"] = Field("Job", description="Always Job.")
    spec: JobSpec = Field(description="What to run.")
    status: Annotated[JobStatus | None, FromSystem] = Field(
        None, description="Where it stands; written by the system."
    )

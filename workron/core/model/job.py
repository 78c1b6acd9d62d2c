"""How one command is run, tried and given up: what a Job and a task of a Workflow share."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from workron.core import formats
from workron.core.jobspec import (
    BACKOFF_FACTOR,
    DEFAULTS,
    EXIT_CODE,
    MAX_ARGUMENTS,
    MAX_ENV_VARS,
    OUTPUT_LIMIT,
    OUTPUT_STREAM,
    OnLeaseLost,
    Overlap,
)
from workron.core.model import base
from workron.core.model.base import (
    Argument,
    Attempts,
    Command,
    EnvName,
    EnvValue,
    ExitCode,
    ObjectName,
    Path,
    PoolName,
    Priority,
    Seconds,
    Timestamp,
)
from workron.core.model.meta import Resource
from workron.core.model.status import FromSystem, JobStatus
from workron.core.plan import Kind
from workron.core.verdict import Condition

_BACKOFF: Final = DEFAULTS.backoff


class EnvVar(base.Record):
    """One variable of a command's environment."""

    name: EnvName = Field(description="Name; those that begin with WORKRON_ are reserved.")
    value: EnvValue = Field("", description="Value, as written: nothing is substituted.")


Env = Annotated[
    tuple[EnvVar, ...],
    base.LAX,
    Field(max_length=MAX_ENV_VARS),
    base.unique_by("name"),
]
ExitCodes = Annotated[tuple[ExitCode, ...], base.LAX, Field(max_length=EXIT_CODE.most)]


class Backoff(base.Record):
    """How long to wait before the next try of a failed command; jitter is added."""

    initial: base.Duration = Field(_BACKOFF.initial, description="Wait after the first failure.")
    factor: float = Field(
        _BACKOFF.factor,
        ge=BACKOFF_FACTOR.least,
        le=BACKOFF_FACTOR.most,
        description="What each further wait is multiplied by.",
    )
    max: base.Duration = Field(_BACKOFF.max, description="No wait is longer.")


class CommandSpec(base.Record):
    """One command, and how it is run."""

    command: Command | None = Field(
        None, description="Command line, run by `sh -c` as written. This or argv."
    )
    argv: Annotated[tuple[Argument, ...], base.LAX] | None = Field(
        None,
        min_length=1,
        max_length=MAX_ARGUMENTS,
        description="Program and arguments, run without a shell. This or command.",
    )
    env: Env = Field((), description="Environment of the command, over that of its pool.")
    workdir: Path | None = Field(
        None, description="Directory to run in; default: a fresh one, removed afterwards."
    )
    pool: PoolName = Field("default", description="The WorkerPool whose workers run it.")
    max_attempts: Attempts = Field(
        DEFAULTS.max_attempts, description="How often its command may fail, last try included."
    )
    max_worker_losses: Attempts = Field(5, description="How often its worker may vanish under it.")
    backoff: Backoff = Field(Backoff(), description="The waits between tries.")
    retry_on: ExitCodes = Field((), description="Only these exit codes are tried again, if given.")
    fail_on: ExitCodes = Field((), description="These exit codes are never tried again.")
    timeout: base.PositiveDuration | None = Field(
        None, description="How long one attempt may run; then it is ended and counts as a failure."
    )
    deadline: base.PositiveDuration | None = Field(
        None, description="How long all of it may take from its submission, waits included."
    )
    overlap: Annotated[Overlap, base.LAX] = Field(
        Overlap.ALLOW,
        description="Forbid: after a lost worker wait for proof that its attempt is dead.",
    )
    on_lease_lost: Annotated[OnLeaseLost, base.LAX] = Field(
        DEFAULTS.on_lease_lost,
        description="Whether a worker that is cut off kills the command or lets it go on.",
    )
    output_limit_bytes: int = Field(
        DEFAULTS.output_limit_bytes,
        ge=OUTPUT_LIMIT.least,
        le=OUTPUT_LIMIT.most,
        description="How many bytes of its output to keep: half its beginning, half its end.",
    )
    output_stream_bytes: int = Field(
        DEFAULTS.output_stream_bytes,
        ge=OUTPUT_STREAM.least,
        le=OUTPUT_STREAM.most,
        description="So many bytes of its output are stored in full, and while it runs;"
        " behind them only what outputLimitBytes keeps. 0: none.",
    )

    @model_validator(mode="after")
    def _has_one_command(self) -> Self:
        if (self.command is None) == (self.argv is None):
            raise base.invalid("needs exactly one of command and argv")
        if self.argv is not None and not self.argv[0].strip():
            raise base.invalid("argv[0], the program, is blank")
        return self

    @model_validator(mode="after")
    def _retries_or_fails(self) -> Self:
        both = sorted(set(self.retry_on) & set(self.fail_on))
        if both:
            raise base.invalid(f"exit code {both[0]} is in retryOn and in failOn; keep it in one")
        return self


When = Literal[Condition.SUCCEEDED, Condition.FAILED, Condition.FINISHED]
"""Which ends of an upstream let a job go."""


class Dependency(base.Record):
    """Another object of the same namespace, whose end is waited for."""

    name: ObjectName = Field(description="Name of the Job or Workflow; it may not exist yet.")
    kind: Literal[Kind.JOB, Kind.WORKFLOW] = Field(Kind.JOB, description="Job or Workflow.")
    when: When = Field(
        Condition.SUCCEEDED, description="The end that lets this job go; Finished is any."
    )


class JobSpec(CommandSpec):
    """One command, when it may start, and what it waits for."""

    depends_on: Annotated[tuple[Dependency, ...], base.LAX] = Field(
        (), max_length=10_000, description="Jobs and Workflows that it waits for."
    )
    priority: Priority = Field(0, description="The greater goes first, within a pool.")
    start_after: Timestamp | None = Field(None, description="It does not start before this time.")
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
                raise base.invalid(
                    f"dependsOn has {upstream.kind} {formats.quoted(upstream.name)} twice"
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

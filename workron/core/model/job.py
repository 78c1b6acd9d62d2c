"""The kind Job, and what it shares with a task of a Workflow: a command and how it is run."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from workron.core import jobspec
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

    name: EnvName = Field(
        description="Name of the variable. Names that begin with WORKRON_ are reserved."
    )
    value: EnvValue = Field("", description="Value, used as written; nothing is substituted.")
    from_env: EnvName | None = Field(
        None,
        description="Takes the value from this variable in the environment of `workron run`, or in"
        " its --env-file. The value is never stored. `workron submit` and a cluster reject it.",
    )

    @model_validator(mode="after")
    def _has_one_value(self) -> Self:
        if self.value and self.from_env is not None:
            raise ValueError("has both value and fromEnv; set one of them")
        return self


Shell = Annotated[
    str | tuple[str, ...],
    PlainValidator(jobspec.read_shell),
    PlainSerializer(lambda shell: shell if isinstance(shell, str) else list(shell)),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "string",
                    "pattern": f"^({jobspec.SHELL_PROGRAM.pattern})$",
                    "maxLength": jobspec.SHELL_PROGRAM.limit,
                },
                {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": jobspec.SHELL_WORDS["ge"],
                    "maxItems": jobspec.SHELL_WORDS["le"],
                },
            ]
        }
    ),
]

ExitCodes = Annotated[base.ListOf[ExitCode], Field(max_length=EXIT_CODE["le"])]


class Backoff(base.Record):
    """Delays before retries of a failed command; each is shortened at random, by up to a half."""

    initial: base.Duration = Field(_BACKOFF.initial, description="Delay after the first failure.")
    factor: float = Field(
        _BACKOFF.factor,
        **BACKOFF_FACTOR,
        description="Factor by which the delay grows with each failure.",
    )
    max: base.Duration = Field(_BACKOFF.max, description="Longest delay.")


class CommandSpec(base.Record):
    """A command and how to run it."""

    command: Command | None = Field(
        None,
        description="Command line, run by the shell as written. Set either command or argv.",
    )
    shell: Shell | None = Field(
        None,
        description="Program that runs `command`: a name such as bash, called with -c, or a list of"
        " the program and its arguments, to which the command is added. Default: sh.",
    )
    argv: base.ListOf[Argument] | None = Field(
        None,
        min_length=1,
        max_length=MAX_ARGUMENTS,
        description="Program and arguments, run without a shell. Set either command or argv.",
    )
    env: Annotated[base.ListOf[EnvVar], base.unique_by("name")] = Field(
        (),
        max_length=MAX_ENV_VARS,
        description="Environment variables of the command. They override those of the pool.",
    )
    workdir: Path | None = Field(
        None,
        description="Working directory, an absolute path; `workron run` also accepts one that is"
        " relative to the file. Default: a new directory, removed after the attempt.",
    )
    pool: PoolName = Field("default", description="The WorkerPool whose workers run the command.")
    max_attempts: Attempts = Field(
        DEFAULTS.max_attempts, description="Attempts that may fail before the job fails."
    )
    max_worker_losses: Attempts = Field(
        5, description="How many workers may be lost while they run this job, before the job fails."
    )
    backoff: Backoff = Field(Backoff(), description="Delays between retries.")
    retry_on: ExitCodes = Field((), description="If set, only these exit codes are retried.")
    fail_on: ExitCodes = Field((), description="These exit codes are never retried.")
    timeout: base.PositiveDuration | None = Field(
        None,
        description="How long one attempt may run. Then it is stopped and counts as a failure.",
    )
    deadline: base.PositiveDuration | None = Field(
        None, description="How long the job may take from submission to end, including waiting."
    )
    overlap: Annotated[Overlap, base.LAX] = Field(
        Overlap.ALLOW,
        description="Forbid: after a worker is lost, wait for proof that its attempt is dead.",
    )
    on_lease_lost: Annotated[OnLeaseLost, base.LAX] = Field(
        DEFAULTS.on_lease_lost,
        description="Whether a worker kills the command or continues it when its lease runs out.",
    )
    output_limit_bytes: int = Field(
        DEFAULTS.output_limit_bytes,
        **OUTPUT_LIMIT,
        description="How many bytes of the output to keep: half from its start, half from its end.",
    )
    output_stream_bytes: int = Field(
        DEFAULTS.output_stream_bytes,
        **OUTPUT_STREAM,
        description="How many bytes of the output to store while the command runs. Output beyond"
        " them is kept up to outputLimitBytes. With 0, output is stored at the end of the attempt.",
    )

    @model_validator(mode="after")
    def _has_one_command(self) -> Self:
        if (self.command is None) == (self.argv is None):
            number = "no command" if self.command is None else "two commands"
            raise ValueError(f"has {number}; set exactly one of command and argv")
        if self.argv is not None and not self.argv[0].strip():
            raise ValueError("argv[0], the program, is blank")
        if self.argv is not None and self.shell is not None:
            raise ValueError("has shell, but argv runs without a shell; remove one of them")
        return self

    @model_validator(mode="after")
    def _retries_or_fails(self) -> Self:
        both = sorted(set(self.retry_on) & set(self.fail_on))
        if both:
            raise ValueError(f"exit code {both[0]} is in retryOn and in failOn; keep it in one")
        return self


When = Literal[Condition.SUCCEEDED, Condition.FAILED, Condition.FINISHED]
"""Ends of an upstream on which a job may start."""


class Dependency(base.Record):
    """A Job or Workflow of the same namespace that must end first."""

    name: ObjectName = Field(description="Name of the Job or Workflow. It need not exist yet.")
    kind: Literal[Kind.JOB, Kind.WORKFLOW] = Field(
        Kind.JOB, description="Kind of the object: Job or Workflow."
    )
    when: When = Field(
        Condition.SUCCEEDED, description="The end of it that is required. Finished accepts any end."
    )


class JobSpec(CommandSpec):
    """A command, when it may start, and what it depends on."""

    depends_on: Annotated[base.ListOf[Dependency], base.unique_by("kind", "name")] = Field(
        (), max_length=10_000, description="Jobs and Workflows that must end first."
    )
    priority: Priority = Field(0, description="Jobs of higher priority start first within a pool.")
    start_after: Timestamp | None = Field(None, description="Earliest time to start.")
    suspend: bool = Field(
        default=False, description="If true, the job does not start. It can be changed at any time."
    )
    cancel: bool = Field(
        default=False, description="Set to true to cancel the job. This cannot be undone."
    )
    ttl_seconds_after_finished: Seconds | None = Field(
        None, description="Seconds after its end when the object is deleted. Default: never."
    )

    @property
    def is_cancelled(self) -> bool:
        """Whether it is to be cancelled."""
        return self.cancel

    @property
    def is_forced(self) -> bool:
        """Whether tasks of `finally` are to be cancelled, too; a Job has none."""
        return False


class Job(Resource):
    """One command to run to completion."""

    kind: Literal["Job"] = Field("Job", description="Kind of the object: Job.")
    spec: JobSpec = Field(description="The command and how to run it.")
    status: Annotated[JobStatus | None, FromSystem] = Field(
        None, description="Current state, written by the controller."
    )

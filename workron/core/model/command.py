"""How one command is run, tried and given up: what a Job and a task of a Workflow share."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from workron.core.command import (
    DEFAULTS,
    EXIT_CODE,
    FACTOR,
    MOST_ARGUMENTS,
    MOST_VARIABLES,
    STREAM,
    TAIL,
    OnLeaseLost,
    Overlap,
)
from workron.core.model import duration, record, scalar
from workron.core.model.scalar import (
    Argument,
    Command,
    EnvName,
    EnvValue,
    ExitCode,
    Path,
    PoolName,
    Tries,
)

_BACKOFF: Final = DEFAULTS.backoff


class EnvVar(record.Record):
    """One variable of a command's environment."""

    name: EnvName = Field(description="Name; those that begin with WORKRON_ are reserved.")
    value: EnvValue = Field("", description="Value, as written: nothing is substituted.")


Env = Annotated[
    tuple[EnvVar, ...],
    record.LAX,
    Field(max_length=MOST_VARIABLES),
    scalar.unique_by("name"),
]
ExitCodes = Annotated[tuple[ExitCode, ...], record.LAX, Field(max_length=EXIT_CODE.most)]


class Backoff(record.Record):
    """How long to wait before the next try of a failed command; jitter is added."""

    initial: duration.Duration = Field(
        _BACKOFF.initial, description="Wait after the first failure."
    )
    factor: float = Field(
        _BACKOFF.factor,
        ge=FACTOR.least,
        le=FACTOR.most,
        description="What each further wait is multiplied by.",
    )
    max: duration.Duration = Field(_BACKOFF.max, description="No wait is longer.")


class CommandSpec(record.Record):
    """One command, and how it is run."""

    command: Command | None = Field(
        None, description="Command line, run by `sh -c` as written. This or argv."
    )
    argv: Annotated[tuple[Argument, ...], record.LAX] | None = Field(
        None,
        min_length=1,
        max_length=MOST_ARGUMENTS,
        description="Program and arguments, run without a shell. This or command.",
    )
    env: Env = Field((), description="Environment of the command, over that of its pool.")
    workdir: Path | None = Field(
        None, description="Directory to run in; default: a fresh one, removed afterwards."
    )
    pool: PoolName = Field("default", description="The WorkerPool whose workers run it.")
    max_attempts: Tries = Field(
        DEFAULTS.max_attempts, description="How often its command may fail, last try included."
    )
    max_losses: Tries = Field(5, description="How often its worker may vanish under it.")
    backoff: Backoff = Field(Backoff(), description="The waits between tries.")
    retry_on: ExitCodes = Field((), description="Only these exit codes are tried again, if given.")
    fail_on: ExitCodes = Field((), description="These exit codes are never tried again.")
    timeout: duration.PositiveDuration | None = Field(
        None, description="How long one attempt may run; then it is ended and counts as a failure."
    )
    deadline: duration.PositiveDuration | None = Field(
        None, description="How long all of it may take from its submission, waits included."
    )
    overlap: Annotated[Overlap, record.LAX] = Field(
        Overlap.ALLOW,
        description="Forbid: after a lost worker wait for proof that its attempt is dead.",
    )
    on_lease_lost: Annotated[OnLeaseLost, record.LAX] = Field(
        DEFAULTS.on_lease_lost,
        description="Whether a worker that is cut off kills the command or lets it go on.",
    )
    output_tail: int = Field(
        DEFAULTS.output_tail,
        ge=TAIL.least,
        le=TAIL.most,
        description="How many bytes of its output to keep: half its beginning, half its end.",
    )
    output_stream: int = Field(
        DEFAULTS.output_stream,
        ge=STREAM.least,
        le=STREAM.most,
        description="So many bytes of its output are stored in full, and while it runs;"
        " behind them only what outputTail keeps. 0: none.",
    )

    @model_validator(mode="after")
    def _has_one_command(self) -> Self:
        if (self.command is None) == (self.argv is None):
            raise record.refusal("needs exactly one of command and argv")
        if self.argv is not None and not self.argv[0].strip():
            raise record.refusal("argv[0], the program, is blank")
        return self

    @model_validator(mode="after")
    def _retries_or_fails(self) -> Self:
        both = sorted(set(self.retry_on) & set(self.fail_on))
        if both:
            raise record.refusal(f"exit code {both[0]} is in retryOn and in failOn; keep it in one")
        return self

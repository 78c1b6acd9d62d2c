"""How a command is run, as the worker reads it from a stored spec, with defaults and bounds.

The models use the same defaults and bounds. The worker does not import them: pydantic would need
more memory than the rest of the worker. `read` accepts what the models accept, and ignores fields
that it does not know, so that an older worker runs the jobs of a newer version.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

import msgspec
from msgspec import Meta

from workron.core import formats, payloads

if TYPE_CHECKING:
    from collections.abc import Mapping


OUTPUT_BYTES: Final = 1024 * 1024
"""Upper limit of `outputLimitBytes`."""


class Bounds(TypedDict):
    """Lowest and highest value of a number, as pydantic and msgspec take them."""

    ge: int
    le: int


ATTEMPTS: Final = Bounds(ge=1, le=100)
EXIT_CODE: Final = Bounds(ge=1, le=255)
BACKOFF_FACTOR: Final = Bounds(ge=1, le=100)
OUTPUT_LIMIT: Final = Bounds(ge=0, le=OUTPUT_BYTES)
OUTPUT_STREAM: Final = Bounds(ge=0, le=payloads.MAX_STREAM_BYTES)
MAX_ARGUMENTS: Final = 10_000
MAX_ENV_VARS: Final = 1000
SHELL_WORDS: Final = Bounds(ge=2, le=100)
SHELL_PROGRAM: Final = formats.TextFormat(
    "a program without arguments; to pass some, write a list such as [bash, -e, -c]", 4095, r"\S+"
)


class Overlap(StrEnum):
    """Whether a job may run while a lost attempt of it may still be running."""

    ALLOW = "Allow"
    FORBID = "Forbid"


class OnLeaseLost(StrEnum):
    """Action of a worker on the command when its lease runs out."""

    KILL = "kill"
    CONTINUE = "continue"


class Duration(timedelta):
    """A duration that a spec has as text, such as 1h30m."""


class PositiveDuration(Duration):
    """A duration that is not zero."""


class Variable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An environment variable: its value, or the variable of the caller that has the value."""

    name: str
    value: str = ""
    from_env: str | None = None

    def __post_init__(self) -> None:
        """Check the texts."""
        _check_text("name", self.name, formats.ENV_NAME)
        _check_text("value", self.value, formats.ENV_VALUE)
        if self.from_env is not None:
            _check_text("fromEnv", self.from_env, formats.ENV_NAME)
            if self.value:
                raise ValueError("has both value and fromEnv; set one of them")


class BackoffPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Delays before retries of a failed command, without jitter."""

    initial: Duration = Duration(seconds=1)
    factor: Annotated[float, Meta(**BACKOFF_FACTOR)] = 2.0
    max: Duration = Duration(minutes=5)


_ExitCodes = Annotated[
    tuple[Annotated[int, Meta(**EXIT_CODE)], ...], Meta(max_length=EXIT_CODE["le"])
]


class Command(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a spec that a worker needs; exactly one of `command` and `argv` is set."""

    command: str | None = None
    shell: str | tuple[str, ...] | None = None
    argv: Annotated[tuple[str, ...], Meta(max_length=MAX_ARGUMENTS)] | None = None
    env: Annotated[tuple[Variable, ...], Meta(max_length=MAX_ENV_VARS)] = ()
    workdir: str | None = None
    max_attempts: Annotated[int, Meta(**ATTEMPTS)] = 3
    backoff: BackoffPolicy = BackoffPolicy()
    retry_on: _ExitCodes = ()
    fail_on: _ExitCodes = ()
    timeout: PositiveDuration | None = None
    on_lease_lost: OnLeaseLost = OnLeaseLost.KILL
    output_limit_bytes: Annotated[int, Meta(**OUTPUT_LIMIT)] = 65536
    output_stream_bytes: Annotated[int, Meta(**OUTPUT_STREAM)] = 0

    def __post_init__(self) -> None:
        """Check the texts and the names of the variables."""
        if self.command is not None:
            _check_text("command", self.command, formats.COMMAND)
        for number, argument in enumerate(self.argv or ()):
            _check_text(f"argv[{number}]", argument, formats.ARGUMENT)
        if self.shell is not None:
            try:
                read_shell(self.shell)
            except ValueError as error:
                raise ValueError(f"shell: {error}") from None
        if self.workdir is not None:
            _check_text("workdir", self.workdir, formats.PATH)
        if len({variable.name for variable in self.env}) < len(self.env):
            raise ValueError("env: a variable is given twice; give it once")

    @property
    def shell_argv(self) -> tuple[str, ...]:
        """The program that runs `command`, with the arguments before it."""
        return self.shell if isinstance(self.shell, tuple) else (self.shell or "sh", "-c")


def read_shell(value: object) -> str | tuple[str, ...]:
    """Read the field `shell` of a manifest; ValueError says what is wrong with it."""
    if isinstance(value, str):
        if problem := SHELL_PROGRAM.problem(value):
            raise ValueError(problem)
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
        raise ValueError("must be the name of a program, or a list of texts: [bash, -e, -c]")
    if not SHELL_WORDS["ge"] <= len(value) <= SHELL_WORDS["le"]:
        raise ValueError(
            f"must be a list of {SHELL_WORDS['ge']} to {SHELL_WORDS['le']} texts: the program and"
            " its arguments, to which the command is added, such as [bash, -e, -c]"
        )
    for number, word in enumerate(value):
        if problem := (formats.ARGUMENT if number else SHELL_PROGRAM).problem(word):
            raise ValueError(f"[{number}]: {problem}")
    return tuple(value)


def _check_text(field: str, value: str, wanted: formats.TextFormat) -> None:
    if problem := wanted.problem(value):
        raise ValueError(f"{field}: {problem}")


DEFAULTS: Final = Command()


_CACHED_SPECS: Final = 16
"""A worker rarely runs jobs of more arrays at a time."""


@dataclass(frozen=True)
class Spec:
    """A stored spec, read once on first use."""

    body: Mapping[str, Any]

    @functools.cached_property
    def command(self) -> Command:
        """The command and how to run it; ValueError if a field is invalid."""
        return read(self.body)


@functools.lru_cache(_CACHED_SPECS)
def of_text(text: str) -> Spec:
    """Return the spec of a stored text: the same object for all jobs of one array.

    PostgreSQL sends the text as a JSON string, like items and inputs.
    """
    body = json.loads(text)
    return Spec(json.loads(body) if isinstance(body, str) else body)


_CLAMPED: Final = {"outputLimitBytes": OUTPUT_LIMIT["le"], "outputStreamBytes": OUTPUT_STREAM["le"]}
_LEVELS: Final = 3
"""The depth of the fields that are read: a variable is in a list in the spec."""
_PLACE: Final = re.compile(r"(.+) - at `\$\.(.+)`", re.DOTALL)


def read(body: Mapping[str, Any]) -> Command:
    """Read a spec; ValueError if a field is invalid."""
    fields = _without_nulls(body, _LEVELS)
    for name, most in _CLAMPED.items():
        if isinstance(fields.get(name), int):
            fields[name] = min(fields[name], most)
    try:
        command = msgspec.convert(fields, Command, dec_hook=_read_duration)
    except msgspec.ValidationError as error:
        raise ValueError(_PLACE.sub(r"\2: \1", str(error))) from None
    if (command.command is None) == (command.argv is None):
        raise ValueError("set exactly one of command and argv")
    if command.argv is not None and not "".join(command.argv[:1]).strip():
        raise ValueError("argv[0], the program, is blank")
    if command.argv is not None and command.shell is not None:
        raise ValueError("has shell, but argv runs without a shell; remove one of them")
    if both := sorted(set(command.retry_on) & set(command.fail_on)):
        raise ValueError(f"exit code {both[0]} is in retryOn and in failOn; keep it in one")
    return command


def _without_nulls(value: Any, levels: int) -> Any:
    """Remove fields that are null, which count as not set."""
    if levels and isinstance(value, dict):
        return {k: _without_nulls(v, levels - 1) for k, v in value.items() if v is not None}
    if levels and isinstance(value, list):
        return [_without_nulls(one, levels - 1) for one in value]
    return value


def _read_duration(wanted: type[Duration], value: object) -> Duration:
    duration = formats.read_duration(value)
    if wanted is PositiveDuration:
        formats.require_positive(duration)
    return wanted(milliseconds=duration // timedelta(milliseconds=1))

"""How a command is run, as the worker reads it from a stored spec, with defaults and bounds.

The models use the same defaults and bounds. The worker does not import them: pydantic would need
more memory than the rest of the worker. `read` accepts what the models accept, and ignores fields
that it does not know, so that an older worker runs the jobs of a newer version.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workron.core import formats, payloads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


OUTPUT_BYTES: Final = 1024 * 1024
"""Upper limit of `outputLimitBytes`."""


class Bounds(NamedTuple):
    """Lowest and highest value of a number."""

    least: int
    most: int


ATTEMPTS: Final = Bounds(1, 100)
EXIT_CODE: Final = Bounds(1, 255)
BACKOFF_FACTOR: Final = Bounds(1, 100)
OUTPUT_LIMIT: Final = Bounds(0, OUTPUT_BYTES)
OUTPUT_STREAM: Final = Bounds(0, payloads.MAX_STREAM_BYTES)
MAX_ARGUMENTS: Final = 10_000
MAX_ENV_VARS: Final = 1000


class Overlap(StrEnum):
    """Whether a job may run while a lost attempt of it may still be running."""

    ALLOW = "Allow"
    FORBID = "Forbid"


class OnLeaseLost(StrEnum):
    """Action of a worker on the command when its lease runs out."""

    KILL = "kill"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Delays before retries of a failed command, without jitter."""

    initial: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    max: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Command:
    """The part of a spec that a worker needs; exactly one of `command` and `argv` is set."""

    command: str | None = None
    argv: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    max_attempts: int = 3
    backoff: BackoffPolicy = BackoffPolicy()
    retry_on: frozenset[int] = frozenset()
    fail_on: frozenset[int] = frozenset()
    timeout: timedelta | None = None
    on_lease_lost: OnLeaseLost = OnLeaseLost.KILL
    output_limit_bytes: int = 65536
    output_stream_bytes: int = 0


DEFAULTS: Final = Command()


if TYPE_CHECKING:
    Reader = Callable[[Any], Any]

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
    """Return the spec of a stored text: the same object for all jobs of one array."""
    return Spec(json.loads(text))


def read(body: Mapping[str, Any]) -> Command:
    """Read a spec; ValueError if a field is invalid."""
    read = Command(**_fields(body, _COMMAND))
    if (read.command is None) == (read.argv is None):
        raise ValueError("set exactly one of command and argv")
    both = sorted(read.retry_on & read.fail_on)
    if both:
        raise ValueError(f"exit code {both[0]} is in retryOn and in failOn; keep it in one")
    return read


def _fields(body: Mapping[str, Any], readers: Mapping[str, tuple[str, Reader]]) -> dict[str, Any]:
    """Read the fields that are set; null counts as not set."""
    return {
        name: _at(f"{field}: ", read, body[field])
        for field, (name, read) in readers.items()
        if body.get(field) is not None
    }


def _at(where: str, read: Reader, value: Any) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{where}{error}") from None


def _strict_mapping(value: Any, readers: Mapping[str, tuple[str, Reader]]) -> dict[str, Any]:
    """Read a mapping in which unknown fields are errors."""
    if not isinstance(value, dict):
        raise ValueError("must be a mapping")  # noqa: TRY004 - all invalid specs raise one type
    unknown = value.keys() - readers.keys()
    if unknown:
        raise ValueError(f"{formats.quoted(str(min(unknown)))} is not known")
    return _fields(value, readers)


def _text(value: Any, wanted: formats.TextFormat) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")  # noqa: TRY004 - (the same)
    if problem := wanted.problem(value):
        raise ValueError(problem)
    return value


def _integer(value: Any, bounds: Bounds) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("must be an integer")  # noqa: TRY004 - (the same)
    return int(_between(value, bounds))


def _between(value: float, bounds: Bounds) -> float:
    if not bounds.least <= value <= bounds.most:
        raise ValueError(f"is {value}; it must be from {bounds.least} to {bounds.most}")
    return value


def _bytes(value: Any, bounds: Bounds) -> int:
    return _integer(min(value, bounds.most) if isinstance(value, int) else value, bounds)


def _factor(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError("must be a number")  # noqa: TRY004 - (the same)
    return _between(float(value), BACKOFF_FACTOR)


def _list(value: Any, read: Reader, most: int) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("must be a list")  # noqa: TRY004 - (the same)
    if len(value) > most:
        raise ValueError(f"has {len(value):,} items; at most {most:,} are allowed")
    return [_at(f"item {number}: ", read, one) for number, one in enumerate(value)]


def _argv(value: Any) -> tuple[str, ...]:
    read = functools.partial(_text, wanted=formats.ARGUMENT)
    argv = tuple(_list(value, read, MAX_ARGUMENTS))
    if not argv or not argv[0].strip():
        raise ValueError("argv[0], the program, is blank")
    return argv


def _env(value: Any) -> Mapping[str, str]:
    variables: Sequence[tuple[str, str]] = _list(value, _variable, MAX_ENV_VARS)
    env = dict(variables)
    if len(env) < len(variables):
        raise ValueError("a variable is given twice; give it once")
    return env


def _variable(value: Any) -> tuple[str, str]:
    variable = _strict_mapping(value, _VARIABLE)
    if "name" not in variable:
        raise ValueError("has no name")
    return variable["name"], variable.get("value", "")


def _name(value: Any) -> str:
    name = _text(value, formats.ENV_NAME)
    if problem := formats.reserved_env_message(name):
        raise ValueError(problem)
    return name


def _codes(value: Any) -> frozenset[int]:
    read = functools.partial(_integer, bounds=EXIT_CODE)
    return frozenset(_list(value, read, EXIT_CODE.most))


def _backoff(value: Any) -> BackoffPolicy:
    return BackoffPolicy(**_strict_mapping(value, _BACKOFF))


def _timeout(value: Any) -> Any:
    return formats.require_positive(formats.read_duration(value))


_VARIABLE: Final[Mapping[str, tuple[str, Reader]]] = {
    "name": ("name", _name),
    "value": ("value", functools.partial(_text, wanted=formats.ENV_VALUE)),
}
_BACKOFF: Final[Mapping[str, tuple[str, Reader]]] = {
    "initial": ("initial", formats.read_duration),
    "factor": ("factor", _factor),
    "max": ("max", formats.read_duration),
}
_COMMAND: Final[Mapping[str, tuple[str, Reader]]] = {
    "command": ("command", functools.partial(_text, wanted=formats.COMMAND)),
    "argv": ("argv", _argv),
    "env": ("env", _env),
    "workdir": ("workdir", functools.partial(_text, wanted=formats.PATH)),
    "maxAttempts": ("max_attempts", functools.partial(_integer, bounds=ATTEMPTS)),
    "backoff": ("backoff", _backoff),
    "retryOn": ("retry_on", _codes),
    "failOn": ("fail_on", _codes),
    "timeout": ("timeout", _timeout),
    "onLeaseLost": ("on_lease_lost", OnLeaseLost),
    "outputLimitBytes": ("output_limit_bytes", functools.partial(_bytes, bounds=OUTPUT_LIMIT)),
    "outputStreamBytes": ("output_stream_bytes", functools.partial(_bytes, bounds=OUTPUT_STREAM)),
}

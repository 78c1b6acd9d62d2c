"""How one command is run, and the defaults and bounds of it: the models say the same to people.

Read out of a stored spec by `spec`; taken by the worker, and by `retry`, which judges its failures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from workron.core import output

if TYPE_CHECKING:
    from collections.abc import Mapping

OUTPUT_BYTES: Final = 1024 * 1024
"""No more than this of a job's output is kept as its tail."""


class Bounds(NamedTuple):
    """The least and the most that a number may be."""

    least: int
    most: int


TRIES: Final = Bounds(1, 100)
EXIT_CODE: Final = Bounds(1, 255)
FACTOR: Final = Bounds(1, 100)
TAIL: Final = Bounds(0, OUTPUT_BYTES)
STREAM: Final = Bounds(0, output.STREAM_BYTES)
MOST_ARGUMENTS: Final = 10_000
MOST_VARIABLES: Final = 1000


class Overlap(StrEnum):
    """May a job run while an earlier attempt of it might still be alive somewhere."""

    ALLOW = "Allow"
    FORBID = "Forbid"


class OnLeaseLost(StrEnum):
    """What a worker does with the command when it has lost touch for too long."""

    KILL = "kill"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before the next try of a failed command; jitter is added."""

    initial: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    max: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Command:
    """What a worker needs to know of a spec: of `command` and `argv` it has one."""

    command: str | None = None
    argv: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    max_attempts: int = 3
    backoff: Backoff = Backoff()
    retry_on: frozenset[int] = frozenset()
    fail_on: frozenset[int] = frozenset()
    timeout: timedelta | None = None
    on_lease_lost: OnLeaseLost = OnLeaseLost.KILL
    output_tail: int = 65536
    output_stream: int = 0


DEFAULTS: Final = Command()

"""What an agent is given: the doors and ports that it works with, and its rhythm.

Made by `workron.cli`, read by `loop` and `pulse`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from workron_worker import meter as metering

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workron.core.ids import SessionKey
    from workron.core.ports import Clock, Rng
    from workron.store.protocol import Claimed, Session, WorkerDoor
    from workron_worker.executor import Executor, OnOutput
    from workron_worker.meter import Meter
    from workron_worker.slots import Slots


def hear_nothing(_: Claimed) -> OnOutput | None:
    """Listen to no attempt; what is kept of its output is reported anyway."""
    return None


def admit_all(_: Session) -> None:
    """Work in whichever pool the token is for."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Doors and ports."""

    door: WorkerDoor
    executor: Executor
    slots: Slots
    clock: Clock
    rng: Rng
    wait_for_work: Callable[[float, SessionKey | None], Awaitable[None]]
    """Returns soon after something became ready, or after so many seconds; but not for what was
    reported in this session."""
    listener: Callable[[Claimed], OnOutput | None] = hear_nothing
    """Gives what is to hear every byte of an attempt's output; None: nothing does."""
    meter: Meter = metering.SILENT


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often and how long."""

    beat: timedelta = timedelta(seconds=2)
    poll: timedelta = timedelta(seconds=1)
    margin: timedelta = timedelta(seconds=4)
    """So long before the end of its lease, but not before its half, a worker that is cut off
    begins to kill."""
    patience: timedelta = timedelta(minutes=1)
    """So long the store may be away before the agent gives up."""
    most_jobs: int | None = None
    """So many are claimed and run, and then the agent drains by itself."""
    longest_idle: timedelta | None = None
    """So long it runs nothing and finds nothing, and then it drains by itself."""

"""What an agent is given: the doors and ports that it works with, and its rhythm.

Made by `workron.cli`, read by `loop` and `pulse`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from workron_worker import meter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workron.core.clock import Clock, Rng
    from workron.core.ids import SessionKey
    from workron.store.api import WorkerStore
    from workron.store.types import ClaimedJob, Session
    from workron_worker.executor import Executor, OnOutput
    from workron_worker.meter import WorkerMeter


def no_listener(_: ClaimedJob) -> OnOutput | None:
    """Listen to no attempt; what is kept of its output is reported anyway."""
    return None


def accept_any_session(_: Session) -> None:
    """Work in whichever pool the token is for."""


@dataclass(frozen=True, slots=True)
class AgentDependencies:
    """Doors and ports."""

    door: WorkerStore
    executor: Executor
    slots: Slots
    clock: Clock
    rng: Rng
    wait_for_work: Callable[[float, SessionKey | None], Awaitable[None]]
    """Returns soon after something became ready, or after so many seconds; but not for what was
    reported in this session."""
    listener: Callable[[ClaimedJob], OnOutput | None] = no_listener
    """Gives what is to hear every byte of an attempt's output; None: nothing does."""
    meter: WorkerMeter = meter.NO_METER


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """How often and how long."""

    heartbeat: timedelta = timedelta(seconds=2)
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


class Slots:
    """A count of free slots, and those who found none."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = count
        self._hungry: dict[Callable[[], None], None] = {}

    def take(self, wake: Callable[[], None]) -> int:
        """Take all that are free; if none is, `wake` is called once when that has changed."""
        taken, self._free = self._free, 0
        if not taken:
            self._hungry[wake] = None
        return taken

    def give(self, count: int) -> None:
        """Give slots back."""
        if not count:
            return
        self._free += count
        # Only those who went away with nothing: waking all would have two idle agents wake each
        # other for ever.
        hungry, self._hungry = self._hungry, {}
        for wake in hungry:
            wake()

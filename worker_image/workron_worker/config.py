"""The input of an agent: its collaborators, its settings, and the slots that agents share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from workron.core.clock import Clock, Rng
from workron.store.types import ClaimedJob
from workron_worker.executor import OnOutput
from workron_worker.metrics import WorkerMetrics
from workron_worker.runner_client import RunnerExecutor

if TYPE_CHECKING:
    from workron.store.api import WorkerStore


@dataclass(frozen=True, slots=True)
class AgentDependencies:
    """The collaborators of an agent."""

    store: WorkerStore
    executor: RunnerExecutor
    slots: Slots
    clock: Clock
    rng: Rng
    listener: Callable[[ClaimedJob], OnOutput | None] | None = None
    """Returns what receives every byte of an attempt's output; None: nothing does."""
    variables: Callable[[ClaimedJob], Mapping[str, str]] = lambda _: {}
    """Returns the values for `fromEnv` of a job; only the process that submitted it has them."""
    metrics: WorkerMetrics = field(default_factory=WorkerMetrics)


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The settings of an agent."""

    heartbeat: timedelta = timedelta(seconds=2)
    """Interval of heartbeats; never longer than a quarter of the lease."""
    poll: timedelta = timedelta(seconds=1)
    """Interval of asking for work while nothing notifies."""
    lease_margin: timedelta = timedelta(seconds=4)
    """How long before its lease ends, but not before half of it, an agent without an answered
    heartbeat begins to kill."""
    store_timeout: timedelta = timedelta(minutes=1)
    """How long the store may be unavailable before the agent fails."""
    kill_store_timeout: timedelta = timedelta(seconds=2)
    """A killed agent waits no longer for an unavailable store; the lease will expire. One that
    drains and has no claims waits half of it for the call that is under way."""
    max_start_failures: int = 5
    """After this many failed starts in a row the agent fails."""
    max_jobs: int | None = None
    """After this many claims the agent drains."""
    idle_exit: timedelta | None = None
    """After this long without anything to run the agent drains."""


class Slots:
    """A counter of free slots that several agents share."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = count
        self._waiting: dict[Callable[[], None], None] = {}

    def take_all(self, wake: Callable[[], None]) -> int:
        """Take all free slots; if there are none, `wake` is called once when there are."""
        taken, self._free = self._free, 0
        if not taken:
            self._waiting[wake] = None
        return taken

    def give_back(self, count: int) -> None:
        """Return slots and wake the agents that found none."""
        if not count:
            return
        self._free += count
        # Only those that found none: two idle agents would otherwise wake each other forever.
        waiting, self._waiting = self._waiting, {}
        for wake in waiting:
            wake()

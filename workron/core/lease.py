"""The two sides of a lease: when the maintainer may reap a worker, and when a worker must stop.

`LeaseObserver` is the maintainer's side, `LeaseDeadline` the worker's. Neither reads a clock: the
caller passes the time of its own monotonic clock. Together they prevent two executions of a job at
the same time:

    worker      stops its commands at   sent_at + lease - margin
    maintainer  reaps the worker at     observed_at + lease

where `sent_at` is when the worker sent its last acknowledged heartbeat and `observed_at >= sent_at`
is when the maintainer first saw it. The worker stops first, provided that the two clocks differ in
speed by less than the margin over one lease.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from workron.core.ids import WorkerId


MIN_HEARTBEAT: Final = timedelta(milliseconds=100)
"""Each heartbeat is a write to the database, and nothing else limits how many a worker sends."""
HEARTBEATS_PER_LEASE: Final = 4
"""A worker sends at least this many, whatever its setting: several answers in a row may be lost."""
_OBSERVATIONS_PER_LEASE: Final = 4


class HeartbeatVersion(NamedTuple):
    """A worker's heartbeat counter at one observation. A change proves that the worker lives.

    A counter is comparable only within one start of the server: a server that lost its last
    commits may show a count for a second time.
    """

    server: str
    heartbeats: int


@dataclass(frozen=True, slots=True)
class WorkerHeartbeat:
    """A worker as the maintainer observes it."""

    worker: WorkerId
    version: HeartbeatVersion
    lease_seconds: float
    name: str
    boot: UUID


class LeaseObserver:
    """Decides which workers to reap from the heartbeats that this process has observed.

    It trusts no timestamp of another machine, so a clock that jumps cannot cause a reap. While the
    database is away no counter can rise, so a gap between two observations does not count against
    a worker: it gets a whole lease again. A failover is such a gap too, however short, since it may
    bring back a version that was seen before.
    """

    def __init__(self) -> None:
        self._seen: dict[WorkerId, tuple[HeartbeatVersion, float]] = {}
        """The last version of each worker, and since when it has not changed."""
        self._observed_at: float | None = None

    def observe(self, now: float, workers: Iterable[WorkerHeartbeat]) -> list[WorkerHeartbeat]:
        """Take in one observation, and return the workers to reap.

        `now` must be read after the store answered. Then it is not earlier than the state that was
        observed, and the reap, which compares the version again, is later still: a whole lease lies
        in between.
        """
        gap = float("inf") if self._observed_at is None else now - self._observed_at
        before, self._seen, self._observed_at = self._seen, {}, now
        expired = []
        for worker in workers:
            version, since = before.get(worker.worker, (None, now))
            is_gap = gap > worker.lease_seconds / _OBSERVATIONS_PER_LEASE
            if version != worker.version or is_gap:
                since = now
            self._seen[worker.worker] = worker.version, since
            if now - since >= worker.lease_seconds:
                expired.append(worker)
        return expired


@dataclass(frozen=True, slots=True)
class LeaseDeadline:
    """When a worker must have stopped its commands, unless another heartbeat is acknowledged.

    It counts from when the heartbeat was sent: the store received it no earlier, so the lease ends
    no earlier either. The margin covers the time to kill commands and the drift of the clocks.
    """

    lease_seconds: float
    margin_seconds: float
    sent_at: float
    """When the last acknowledged heartbeat was sent."""

    def __post_init__(self) -> None:
        if not 0 <= self.margin_seconds < self.lease_seconds:
            raise errors.InputError(
                f"the margin of {self.margin_seconds:g} s does not fit the lease of"
                f" {self.lease_seconds:g} s: it must be at least 0 s and shorter than the lease"
            )

    def acknowledge(self, sent_at: float) -> LeaseDeadline:
        """Return the deadline after an acknowledged heartbeat; answers may come in any order."""
        return replace(self, sent_at=max(self.sent_at, sent_at))

    @property
    def at(self) -> float:
        """The time of the deadline, on the same clock as `sent_at`."""
        return self.sent_at + self.lease_seconds - self.margin_seconds

    def has_passed(self, now: float) -> bool:
        """Return whether every command must be stopped by now."""
        return now >= self.at

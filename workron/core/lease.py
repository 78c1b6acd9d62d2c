"""The two sides of a lease: when the maintainer may reap, and when a worker must stop by itself.

`Watch` is the maintainer's, `Deadline` the worker's. Neither reads a clock: the caller passes
what its own monotonic clock says. Together they keep executions apart: a worker has passed its
deadline before anybody reaps it, as long as both clocks run equally fast within the margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workron.core.ids import WorkerId


MIN_HEARTBEAT: Final = timedelta(milliseconds=100)
"""Each beat is a write of the database, and a worker's right to make them has no other bound."""
HEARTBEATS_PER_LEASE: Final = 4
"""So often a worker beats at least, whatever it was told: an answer may be lost, and the next."""
_LOOKS_PER_LEASE: Final = 4


class ObservedWorker(Protocol):
    """A worker as one look shows it; the rows of the store's `look` are such."""

    @property
    def worker(self) -> WorkerId:
        """Who."""

    @property
    def version(self) -> object:
        """What tells one beat from the next: its counter, and the run of the server that has it."""

    @property
    def lease_seconds(self) -> float:
        """How long its claims outlive its last beat."""


_S = TypeVar("_S", bound=ObservedWorker)


@dataclass(frozen=True, slots=True)
class _Stand:
    sign: object
    since: float


class LeaseObserver:
    """What one observer itself has seen of the workers' counters, and nothing else.

    It believes no timestamp of another machine, so a clock that jumps reaps nobody. A counter
    cannot rise while the database is away, so time that passed without looks does not count
    against a worker: after such a gap it has a whole lease again. A failover is such a gap, too,
    however short: it may bring back a counter that was seen before.
    """

    def __init__(self) -> None:
        self._stands: dict[WorkerId, _Stand] = {}
        self._looked_at: float | None = None

    def observe(self, now: float, sightings: Iterable[_S]) -> list[_S]:
        """Take in one look; name those to reap, each with the sign that must still hold.

        `now` is read after the look was answered. It then is no earlier than what the look saw,
        and the reap, which checks the sign again, is later still: a whole lease lies between.
        """
        gap = float("inf") if self._looked_at is None else now - self._looked_at
        before, self._stands, self._looked_at = self._stands, {}, now
        fallen = []
        for seen in sightings:
            stand = _continue(before.get(seen.worker), seen, now, gap)
            self._stands[seen.worker] = stand
            if now - stand.since >= seen.lease_seconds:
                fallen.append(seen)
        return fallen


def _continue(stand: _Stand | None, seen: ObservedWorker, now: float, gap: float) -> _Stand:
    if stand is None or stand.sign != seen.version or gap > seen.lease_seconds / _LOOKS_PER_LEASE:
        return _Stand(seen.version, now)
    return stand


@dataclass(frozen=True, slots=True)
class LeaseDeadline:
    """When a worker must have killed what it runs, unless another beat is acknowledged.

    Counted from when the beat was sent: the store took it in no earlier, so the lease that the
    maintainer grants ends no earlier either. The margin covers the kill and the clocks' drift.
    """

    lease_seconds: float
    margin_seconds: float
    sent_at: float
    """When the last acknowledged beat was sent."""

    def __post_init__(self) -> None:
        if not 0 <= self.margin_seconds < self.lease_seconds:
            raise errors.InputError(
                f"a margin of {self.margin_seconds:g} s does not fit a lease of"
                f" {self.lease_seconds:g} s; it must be at least 0 s and shorter than the lease"
            )

    def acknowledge(self, sent_at: float) -> LeaseDeadline:
        """Move on to a beat that was answered; answers may come in any order."""
        return replace(self, sent_at=max(self.sent_at, sent_at))

    @property
    def at(self) -> float:
        """The moment itself, on the clock that `sent_at` was read from."""
        return self.sent_at + self.lease_seconds - self.margin_seconds

    def has_passed(self, now: float) -> bool:
        """Whether everything must be dead by now."""
        return now >= self.at

"""How many workers a pool should have: at once as many as its jobs keep busy, fewer in time. Pure.

The queue's depth alone decides, so a pool without work has no worker, unless it is to keep some.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from workron.core.model.workerpool import WorkerPoolSpec


IDLE_SECONDS: Final = 300.0
"""A worker that is not needed is kept for so long: jobs often come in waves, and pods are slow."""


def desired_replicas(spec: WorkerPoolSpec, ready: int, running: int) -> int:
    """Say how many would have all jobs running now, within what the pool allows."""
    if spec.replicas is not None:
        return spec.replicas
    wanted = math.ceil((ready + running) / spec.slots)
    return max(spec.min_replicas, min(wanted, spec.max_replicas))


class ScaleDownDelay:
    """What was needed lately: the most of it still is."""

    def __init__(self, present: int, now: float) -> None:
        # Whoever begins knows nothing of the time before, and takes nothing away because of that.
        self._needed: deque[tuple[float, int]] = deque([(now, present)])

    def most(self, spec: WorkerPoolSpec, needed: int, now: float) -> int:
        """Take in what is needed now, and give the most of the last minutes."""
        if spec.replicas is not None:
            # A number that somebody wrote is meant.
            self._needed.clear()
        while self._needed and self._needed[0][0] <= now - IDLE_SECONDS:
            self._needed.popleft()
        while self._needed and self._needed[-1][1] <= needed:
            self._needed.pop()
        self._needed.append((now, needed))
        most = self._needed[0][1]
        return most if spec.replicas is not None else min(most, spec.max_replicas)


CONNECTIONS_PER_WORKER: Final = 4
"""Two for verbs, one to beat, one to listen."""
_SHARE: Final = 0.75
"""Of all that the database takes: the operator, people and other programs need some, too."""


def role_connection_limit(most: int) -> int:
    """Say how many connections a pool of so many workers needs while all are being replaced."""
    return CONNECTIONS_PER_WORKER * (2 * most + 1)


class ConnectionBudget:
    """How many workers there may be, and who has them."""

    def __init__(self, connections: int | None = None) -> None:
        """Share out so many connections, or by itself three of four that the database has."""
        self._connections = connections
        self._limit: int | None = None
        self._wanted: dict[Hashable, int] = {}
        self._present: dict[Hashable, int] = {}
        self._others = 0

    def learn(self, connections: int | None) -> None:
        """Take in how many connections the database takes from everybody."""
        self._limit = connections and int(connections * _SHARE)

    @property
    def most(self) -> int | None:
        """Say how many workers there may be in all; None: nobody counts."""
        connections = self._limit if self._connections is None else self._connections
        return None if connections is None else connections // CONNECTIONS_PER_WORKER

    def keep(self, pools: Mapping[Any, int], others: int = 0) -> None:
        """Take in how many workers each pool wants, and how many there are of none of these.

        Those are of pools that were deleted, and end in time, or are run by people. They take room,
        and nobody ends because of them.
        """
        self._wanted, self._others = dict(pools), others
        self._present = {pool: had for pool, had in self._present.items() if pool in pools}

    def begin(self, pool: Hashable, present: int) -> None:
        """Take in how many a pool has of which nothing was noted yet."""
        self._present.setdefault(pool, present)

    def note(self, pool: Hashable, present: int) -> None:
        """Take in how many it has, those that are about to end among them."""
        self._present[pool] = present

    def wanted(self, pool: Hashable) -> int:
        """Say how many workers it wants."""
        return self._wanted.get(pool, 0)

    def share(self, pool: Hashable) -> int:
        """Say how many of the workers it wants it is to have in the end."""
        if self.most is None:
            return self.wanted(pool)
        return _shares(self._wanted, self.most).get(pool, 0)

    def room(self, pool: Hashable) -> float:
        """Say how many it may have beside those of all others as they are."""
        if self.most is None:
            return math.inf
        present = sum(had for other, had in self._present.items() if other != pool)
        return self.most - self._others - present


def _shares(wanted: Mapping[Hashable, int], most: int) -> Mapping[Hashable, int]:
    """Give one worker after the other to whoever has fewest and wants more."""
    level = _level(wanted, most)
    shares = {pool: min(want, level) for pool, want in wanted.items()}
    hungry = [pool for pool, want in wanted.items() if want > level]
    for pool in hungry[: most - sum(shares.values())]:
        shares[pool] += 1
    return shares


def _level(wanted: Mapping[Hashable, int], most: int) -> int:
    """Find the number up to which everybody can have what it wants."""
    left, level = most, 0
    rest = sorted(wanted.values())
    while rest:
        share = left // len(rest)
        if rest[0] > share:
            return share
        level = rest.pop(0)
        left -= level
    return level

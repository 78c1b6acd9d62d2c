"""The number of workers that each pool should have. Pure.

A pool needs as many workers as have slots for all its queued and running jobs. It grows at once,
and shrinks when fewer workers were needed for five minutes. `ConnectionBudget` bounds the workers
of all pools together by the connections of the database, and shares them fairly.
"""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from workron.core.model.workerpool import WorkerPoolSpec


SCALE_DOWN_SECONDS: Final = 300.0
"""How long an idle worker is kept: jobs often come in waves, and a pod takes long to start."""


def desired_replicas(spec: WorkerPoolSpec, queued: int, running: int) -> int:
    """Return the workers that could run all jobs now, within the bounds of the pool."""
    if spec.replicas is not None:
        return spec.replicas
    needed = math.ceil((queued + running) / spec.slots)
    return max(spec.min_replicas, min(needed, spec.max_replicas))


class ScaleDownDelay:
    """The largest number of workers that was needed within the last `SCALE_DOWN_SECONDS`."""

    def __init__(self, present: int, now: float) -> None:
        # A new leader does not know the earlier needs, so it keeps the present workers.
        self._needed = [(now, present)]

    def desired(self, spec: WorkerPoolSpec, needed: int, now: float) -> int:
        """Record what is needed now, and return the workers to have."""
        if spec.replicas is not None:
            # A fixed number is meant to take effect at once.
            self._needed = [(now, needed)]
            return needed
        since = now - SCALE_DOWN_SECONDS
        higher = [(at, count) for at, count in self._needed if at > since and count > needed]
        self._needed = [*higher, (now, needed)]
        return min(self._needed[0][1], spec.max_replicas)


CONNECTIONS_PER_WORKER: Final = 4
"""Two for store calls, one for heartbeats, one for LISTEN."""
_WORKERS_SHARE: Final = 0.75
"""Share of the database's connections; controllers, users and other programs need some, too."""


def role_connection_limit(max_workers: int) -> int:
    """Return the connections that a pool of this size needs while all workers are replaced."""
    return CONNECTIONS_PER_WORKER * (2 * max_workers + 1)


class ConnectionBudget:
    """How many workers there may be, and how many each pool may have."""

    def __init__(self, connections: int | None = None) -> None:
        """Share this number of connections, or by default three quarters of the database's."""
        self._connections = connections
        self._limit: int | None = None
        self._wanted: dict[Hashable, int] = {}
        self._present: dict[Hashable, int] = {}
        self._others = 0

    def set_database_limit(self, connections: int | None) -> None:
        """Record how many connections the database accepts; None: no limit is known."""
        self._limit = connections and int(connections * _WORKERS_SHARE)

    @property
    def max_workers(self) -> int | None:
        """The number of workers of all pools together; None: unlimited."""
        connections = self._limit if self._connections is None else self._connections
        return None if connections is None else connections // CONNECTIONS_PER_WORKER

    def set_demand(
        self, wanted: Mapping[Any, int], present: Mapping[Any, int], others: int = 0
    ) -> None:
        """Record how many workers each pool wants, and how many belong to none of these pools.

        `present` counts for pools that are new here. The others belong to deleted pools, or were
        started by users. They use connections, and are never stopped because of that.
        """
        self._wanted, self._others = dict(wanted), others
        self._present = {pool: self._present.get(pool, present.get(pool, 0)) for pool in wanted}

    def set_present(self, pool: Hashable, present: int) -> None:
        """Record how many workers a pool has, terminating ones included."""
        self._present[pool] = present

    def wanted(self, pool: Hashable) -> int:
        """Return how many workers a pool wants."""
        return self._wanted.get(pool, 0)

    def share(self, pool: Hashable) -> int:
        """Return how many of the wanted workers a pool gets in the end."""
        if self.max_workers is None:
            return self.wanted(pool)
        return _fair_shares(self._wanted, self.max_workers).get(pool, 0)

    def headroom(self, pool: Hashable) -> float:
        """Return how many workers a pool may have now, beside the present ones of all others."""
        if self.max_workers is None:
            return math.inf
        present = sum(count for other, count in self._present.items() if other != pool)
        return self.max_workers - self._others - present


def _fair_shares(wanted: Mapping[Hashable, int], total: int) -> Mapping[Hashable, int]:
    """Give workers one by one to the pool that has fewest and wants more."""

    def given(level: int) -> int:
        return sum(min(count, level) for count in wanted.values())

    # The highest level up to which every pool gets what it wants.
    levels = range(1, max(wanted.values(), default=0) + 1)
    level = bisect.bisect_right(levels, total, key=given)
    shares = {pool: min(count, level) for pool, count in wanted.items()}
    unsatisfied = [pool for pool, count in wanted.items() if count > level]
    for pool in unsatisfied[: total - given(level)]:
        shares[pool] += 1
    return shares

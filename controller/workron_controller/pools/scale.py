"""How many workers a pool should have: at once as many as its jobs keep busy, fewer in time. Pure.

The queue's depth alone decides, so a pool without work has no worker, unless it is to keep some.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workron.core.model.pool import WorkerPoolSpec

IDLE_SECONDS: Final = 300.0
"""A worker that is not needed is kept for so long: jobs often come in waves, and pods are slow."""


def needed(spec: WorkerPoolSpec, ready: int, running: int) -> int:
    """Say how many would have all jobs running now, within what the pool allows."""
    if spec.replicas is not None:
        return spec.replicas
    wanted = math.ceil((ready + running) / spec.slots)
    return max(spec.min_replicas, min(wanted, spec.max_replicas))


class Patience:
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

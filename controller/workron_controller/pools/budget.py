"""The connections that a database has, and how pools share them: no more workers than those. Pure.

Each pool may have what the others leave, and where that is too little for all, each as much as any
other that wants more. Whoever has too many gives way before another gets them, for a worker that is
asked to end is connected until it has.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

A_WORKER: Final = 4
"""Two for verbs, one to beat, one to listen."""
_SHARE: Final = 0.75
"""Of all that the database takes: the operator, people and other programs need some, too."""


def for_role(most: int) -> int:
    """Say how many connections a pool of so many workers needs while all are being replaced."""
    return A_WORKER * (2 * most + 1)


class Budget:
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
        return None if connections is None else connections // A_WORKER

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

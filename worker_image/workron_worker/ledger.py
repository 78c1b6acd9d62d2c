"""The claims of an agent, from the asking for one to the answer to its report.

Called by `loop` alone. A claim is asked for, runs, and then either its end is reported, or it is
handed back, or nothing more is said of it; which of these is its fate, and may change while it
runs.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from workron.core import errors, ids
from workron.store.protocol import Loss
from workron_worker.beat import Knowledge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from workron.core.ids import ClaimId
    from workron.core.ports import Rng
    from workron.store.protocol import Claimed, End, Right


class Fate(Enum):
    """What follows when the command of a claim is over."""

    REPORT = auto()
    RELEASE = auto()
    """It was ended for a reason that is not the job's; another worker may have it."""
    DROP = auto()
    """The store has taken the claim back already."""
    LOST_ALONE = auto()
    """It went down with what ran it, and nothing else did."""
    LOST_TOGETHER = auto()
    """It went down with what ran it, as others did."""


_LOSSES: Final[Mapping[Fate, Loss]] = MappingProxyType(
    {Fate.LOST_ALONE: Loss.ALONE, Fate.LOST_TOGETHER: Loss.TOGETHER}
)
_WORTH_A_LINE: Final = 2


@dataclass(slots=True)
class Running:
    """A claim whose command runs."""

    claimed: Claimed
    began_at: float
    """On the agent's clock."""
    is_over: bool = False
    fate: Fate = Fate.REPORT
    beats: int = 0
    """How often the worker has beaten since it began."""


class Ledger:
    """What the agent knows of its claims."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._known: set[ClaimId] = set()
        self._ends: list[End] = []
        self._releases: dict[Loss | None, list[Right]] = {}
        self._taken = 0
        self._session = object()
        """Changes when all is forgotten: what is answered afterwards is counted no more."""
        self.running: dict[ClaimId, Running] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing runs and nothing is left to tell the store."""
        return not self.count

    @property
    def count(self) -> int:
        """How many claims run, or are over and the store has not answered a report of them."""
        return len(self.running) + self._untold + self._taken

    @property
    def ends(self) -> int:
        """How many ends are to be reported."""
        return len(self._ends)

    def has_few_ends(self, many: int) -> bool:
        """Whether something is to be told to the store, but less than is many, and more runs."""
        return 0 < self._untold < min(many, len(self.running))

    @property
    def _untold(self) -> int:
        return len(self._ends) + sum(map(len, self._releases.values()))

    def beaten(self) -> Sequence[Claimed]:
        """Count a beat; give what has run since the one before, which the log did not name yet."""
        for running in self.running.values():
            running.beats += 1
        # At its first beat a claim may just have begun.
        return [one.claimed for one in self.running.values() if one.beats == _WORTH_A_LINE]

    def knowledge(self) -> Knowledge:
        """What a beat's answer is compared with."""
        return Knowledge(frozenset(self.running), frozenset(self._known))

    def ask(self, count: int, now: datetime) -> list[ClaimId]:
        """Draw ids for claims that will be asked for."""
        claims = ids.mint_claims(now, self._rng, count)
        self._known.update(claims)
        return claims

    def start(self, claimed: Claimed, now: float) -> Running:
        """Enter a claim that was granted and runs from now on."""
        running = self.running[claimed.claim] = Running(claimed, now)
        return running

    def end(self, running: Running, end: End | None) -> None:
        """Enter the end of a command; None: it never ran, or not to an end of its own."""
        claim = running.claimed.claim
        running.is_over = True
        del self.running[claim]
        if running.fate is Fate.DROP:
            self._known.discard(claim)
        elif running.fate is Fate.REPORT and end is not None:
            self._ends.append(end)
        else:
            self._release(_LOSSES.get(running.fate), [running.claimed.right])

    def hand_back(self, rights: Iterable[Right]) -> None:
        """Enter claims that are ours but that nothing here runs."""
        self._release(None, rights)
        self._known.update(right.claim for right in rights)

    def take_ends(self) -> Sequence[End]:
        """Give the ends that are to be reported, each once."""
        ends, self._ends = self._ends, []
        return ends

    def take_releases(self) -> Mapping[Loss | None, Sequence[Right]]:
        """Give the claims that are to be handed back, each once, by how they were lost, if so."""
        releases, self._releases = self._releases, {}
        return releases

    @contextlib.contextmanager
    def telling(self, count: int) -> Iterator[None]:
        """Count so many of those that were taken as ours until the store has answered.

        That it knows this worker no more is an answer, too; none at all is not.
        """
        session = self._session
        self._taken += count
        try:
            yield
        except errors.SessionError:
            self._answered(session, count)
            raise
        self._answered(session, count)

    def _answered(self, session: object, count: int) -> None:
        if session is self._session:
            self._taken -= count

    def forget(self, claims: Iterable[ClaimId]) -> None:
        """Strike claims that the store has answered for, or never granted."""
        self._known.difference_update(claims)

    def _release(self, lost: Loss | None, rights: Iterable[Right]) -> None:
        self._releases.setdefault(lost, []).extend(rights)

    def forget_all(self) -> None:
        """Strike everything: the store knows this worker no more."""
        for running in self.running.values():
            running.fate = Fate.DROP
        self._ends.clear()
        self._releases.clear()
        self._session, self._taken = object(), 0
        self._known = set(self.running)

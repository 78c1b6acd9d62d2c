"""The claims of an agent, from the asking for one to the answer to its report.

Called by `loop` alone. A claim is asked for, runs, and then either its end is reported, or it is
handed back, or nothing more is said of it; which of these is its fate, and may change while it
runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from workron.core import errors, ids
from workron.store.types import LossKind, Signal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from workron.core.clock import Rng
    from workron.core.ids import ClaimId, SessionKey
    from workron.store.types import AttemptReport, ClaimedJob, ClaimRef, HeartbeatReply
    from workron_worker.config import AgentDependencies
    from workron_worker.store_calls import StoreRetry


_ENDING: Final = frozenset({Signal.CANCEL, Signal.EXPIRE})


@dataclass(frozen=True, slots=True)
class KnownClaims:
    """The claims of an agent at one moment."""

    running: AbstractSet[ClaimId]
    known: AbstractSet[ClaimId]
    """All of them: asked for, running, or over and not reported yet."""


@dataclass(frozen=True, slots=True)
class HeartbeatActions:
    """What is to be done."""

    kill: AbstractSet[ClaimId]
    """Somebody asked for their end; it is reported."""
    drop: AbstractSet[ClaimId]
    """Taken back by the store: killed, and never spoken of again."""
    release: Sequence[ClaimRef]
    """The store counts them as ours, but nothing here runs or ran them."""


def read_heartbeat(beat: HeartbeatReply, before: KnownClaims, now: KnownClaims) -> HeartbeatActions:
    """Compare the store's list with our own."""
    held = {one.claim for one in beat.held}
    ending = {one.claim for one in beat.held if one.signal in _ENDING}
    return HeartbeatActions(
        kill=ending & now.running,
        # A claim that came while the beat was on its way is not on a list made before it.
        drop=(before.running & now.running) - held,
        release=[one.ref for one in beat.held if one.claim not in before.known | now.known],
    )


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


_LOSSES: Final[Mapping[Fate, LossKind]] = MappingProxyType(
    {Fate.LOST_ALONE: LossKind.ALONE, Fate.LOST_TOGETHER: LossKind.TOGETHER}
)
_WORTH_A_LINE: Final = 2


@dataclass(slots=True)
class RunningClaim:
    """A claim whose command runs."""

    claimed: ClaimedJob
    began_at: float
    """On the agent's clock."""
    is_over: bool = False
    fate: Fate = Fate.REPORT
    beats: int = 0
    """How often the worker has beaten since it began."""


class Claims:
    """What the agent knows of its claims."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._known: set[ClaimId] = set()
        self._ends: list[AttemptReport] = []
        self._releases: dict[LossKind | None, list[ClaimRef]] = {}
        self._taken = 0
        self._session = object()
        """Changes when all is forgotten: what is answered afterwards is counted no more."""
        self.running: dict[ClaimId, RunningClaim] = {}

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

    def beaten(self) -> Sequence[ClaimedJob]:
        """Count a beat; give what has run since the one before, which the log did not name yet."""
        for running in self.running.values():
            running.beats += 1
        # At its first beat a claim may just have begun.
        return [one.claimed for one in self.running.values() if one.beats == _WORTH_A_LINE]

    def knowledge(self) -> KnownClaims:
        """What a beat's answer is compared with."""
        return KnownClaims(frozenset(self.running), frozenset(self._known))

    def ask(self, count: int, now: datetime) -> list[ClaimId]:
        """Draw ids for claims that will be asked for."""
        claims = ids.mint_claims(now, self._rng, count)
        self._known.update(claims)
        return claims

    def start(self, claimed: ClaimedJob, now: float) -> RunningClaim:
        """Enter a claim that was granted and runs from now on."""
        running = self.running[claimed.claim] = RunningClaim(claimed, now)
        return running

    def end(self, running: RunningClaim, end: AttemptReport | None) -> None:
        """Enter the end of a command; None: it never ran, or not to an end of its own."""
        claim = running.claimed.claim
        running.is_over = True
        del self.running[claim]
        if running.fate is Fate.DROP:
            self._known.discard(claim)
        elif running.fate is Fate.REPORT and end is not None:
            self._ends.append(end)
        else:
            self._release(_LOSSES.get(running.fate), [running.claimed.ref])

    def hand_back(self, rights: Iterable[ClaimRef]) -> None:
        """Enter claims that are ours but that nothing here runs."""
        self._release(None, rights)
        self._known.update(right.claim for right in rights)

    def take_ends(self) -> Sequence[AttemptReport]:
        """Give the ends that are to be reported, each once."""
        ends, self._ends = self._ends, []
        return ends

    def take_releases(self) -> Mapping[LossKind | None, Sequence[ClaimRef]]:
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

    def _release(self, lost: LossKind | None, rights: Iterable[ClaimRef]) -> None:
        self._releases.setdefault(lost, []).extend(rights)

    def forget_all(self) -> None:
        """Strike everything: the store knows this worker no more."""
        for running in self.running.values():
            running.fate = Fate.DROP
        self._ends.clear()
        self._releases.clear()
        self._session, self._taken = object(), 0
        self._known = set(self.running)


_PLENTY: Final = 200
"""So many ends are worth a call of their own."""


class ClaimExchange:
    """One at a time, and one report beside it."""

    def __init__(self, around: AgentDependencies, ledger: Claims, patience: StoreRetry) -> None:
        self._around = around
        self._ledger = ledger
        self._patience = patience
        self._is_under_way = False
        self._has_plenty = asyncio.Event()
        self.told = 0
        """How many ends the last one had."""

    async def hand_back(self, key: SessionKey) -> None:
        """Release what somebody else is to run."""
        releases = self._ledger.take_releases()
        with self._ledger.telling(sum(map(len, releases.values()))):
            for lost, rights in releases.items():
                release = functools.partial(self._around.door.release, key, rights, lost)
                await self._patience.insist(release)
                self._around.meter.released(len(rights))
                self._ledger.forget(right.claim for right in rights)

    async def make(self, key: SessionKey, claims: Sequence[ClaimId]) -> Sequence[ClaimedJob]:
        """Report all ends, and ask for claims under these ids, a slot each; give those granted."""
        ends = self._ledger.take_ends()
        self.told = len(ends)
        granted: Sequence[ClaimedJob] = ()
        asked_at = self._around.clock.monotonic()
        self._is_under_way = True
        try:
            granted = await self._complete(key, ends, claims)
        finally:
            self._is_under_way = False
            self._around.slots.give(len(claims) - len(granted))
            self._ledger.forget(set(claims) - {claimed.claim for claimed in granted})
        if claims:
            seconds = self._around.clock.monotonic() - asked_at
            self._around.meter.claimed(len(granted), seconds)
        return granted

    def notice(self) -> None:
        """Note that there is an end more."""
        if self._ledger.ends >= _PLENTY:
            self._has_plenty.set()

    async def plenty(self) -> None:
        """Wait until there are many ends beside an exchange."""
        await self._has_plenty.wait()
        self._has_plenty.clear()

    async def report_beside(self, key: SessionKey) -> None:
        """Report many ends, if an exchange is under way and does not have them."""
        if self._is_under_way and self._ledger.ends >= _PLENTY:
            await self._complete(key, self._ledger.take_ends(), ())

    async def _complete(
        self, key: SessionKey, ends: Sequence[AttemptReport], claims: Sequence[ClaimId]
    ) -> Sequence[ClaimedJob]:
        call = functools.partial(self._call, key, ends, claims)
        try:
            with self._ledger.telling(len(ends)):
                return await self._patience.insist(call)
        finally:
            self._ledger.forget(end.claim for end in ends)

    async def _call(
        self, key: SessionKey, ends: Sequence[AttemptReport], claims: Sequence[ClaimId]
    ) -> Sequence[ClaimedJob]:
        if ends:
            completed = await self._around.door.complete(key, ends, claims)
            self._around.meter.reported(ends, completed.answers)
            return completed.claimed
        if claims:
            return await self._around.door.claim(key, claims)
        return ()


_FIRST: Final = 32
"""What is asked for while nothing has come yet."""
_LEAST: Final = 4


class ClaimLimit:
    """Doubles while it is fed, and shrinks to twice what it was given when it was given less."""

    def __init__(self, slots: int) -> None:
        self._most = max(_FIRST, slots // 2)
        self._size = _FIRST
        self._left_some = False

    def of(self, free: int) -> int:
        """Say how many of the free slots to ask for."""
        asked = min(free, self._size, self._most)
        self._left_some = asked < free
        return asked

    def fed(self, *, asked: int, granted: int) -> bool:
        """Take in one answer; tell whether there are slots left, and maybe more for them."""
        if not asked:
            return False
        wider = max(_LEAST, 2 * granted)
        # All that was free may have been less than the appetite; that says nothing against it.
        self._size = max(self._size, wider) if granted == asked else min(self._size, wider)
        return granted == asked and self._left_some

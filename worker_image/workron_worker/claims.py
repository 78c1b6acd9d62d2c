"""The claims of an agent, from the request for one to the answer to its report.

A claim is requested under an id that the agent creates; if granted, its command runs; then its
`Disposition` decides: its end is reported, or the claim is released, or it is dropped because the
store has reaped it. `ClaimExchange` does both directions in one store call, `complete`: it reports
the ends that have gathered and claims as many jobs as there are free slots.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Final

from workron.core import ids
from workron.core.clock import Rng
from workron.core.ids import ClaimId, SessionKey
from workron.store.types import (
    AttemptReport,
    ClaimedJob,
    ClaimRef,
    HeartbeatReply,
    LossKind,
    Signal,
)
from workron_worker.config import AgentDependencies
from workron_worker.store_retry import StoreRetry

_KILLING_SIGNALS: Final = frozenset({Signal.CANCEL, Signal.EXPIRE})


@dataclass(frozen=True, slots=True)
class ClaimSnapshot:
    """The claims of an agent at one moment."""

    running: AbstractSet[ClaimId]
    known: AbstractSet[ClaimId]
    """All of them: requested, running, or ended and not reported yet."""


@dataclass(frozen=True, slots=True)
class HeartbeatActions:
    """The actions that the answer to a heartbeat requests."""

    kill: AbstractSet[ClaimId]
    """Cancelled or expired; the end is reported."""
    drop: AbstractSet[ClaimId]
    """Reaped by the store: killed and not reported."""
    release: Sequence[ClaimRef]
    """Held according to the store, but unknown here."""


def read_heartbeat(
    reply: HeartbeatReply, before: ClaimSnapshot, now: ClaimSnapshot
) -> HeartbeatActions:
    """Compare the store's list with the claims before and after the call."""
    held = {one.claim for one in reply.held}
    ending = {one.claim for one in reply.held if one.signal in _KILLING_SIGNALS}
    return HeartbeatActions(
        kill=ending & now.running,
        # A claim that was granted during the call is not on a list made before it.
        drop=(before.running & now.running) - held,
        release=[one.ref for one in reply.held if one.claim not in before.known | now.known],
    )


class Disposition(Enum):
    """The next step when the command of a claim has ended."""

    REPORT = auto()
    RELEASE = auto()
    """It was ended for a reason that is not the job's; another worker may have it."""
    DROP = auto()
    """The store has reaped the claim already."""


_HEARTBEATS_BEFORE_LOG: Final = 2
"""At its first heartbeat a claim may just have begun; short attempts get no line of their own."""


@dataclass(slots=True)
class RunningClaim:
    """A claim whose command runs."""

    job: ClaimedJob
    began_at: float
    """On the agent's clock."""
    has_ended: bool = False
    disposition: Disposition = Disposition.REPORT
    loss: LossKind | None = None
    """How it was lost, if its runner was."""
    heartbeats: int = 0
    """How many heartbeats were answered since it began."""


class Claims:
    """All claims of an agent that the store may count as its own."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._known: set[ClaimId] = set()
        self._reports: list[AttemptReport] = []
        self._releases: dict[LossKind | None, list[ClaimRef]] = {}
        self._sent: set[ClaimId] = set()
        """Those whose report or release was sent and not answered."""
        self.running: dict[ClaimId, RunningClaim] = {}

    @property
    def count(self) -> int:
        """How many claims run, or have ended and the store has not answered their report."""
        return len(self.running) + self._unsent + len(self._sent)

    @property
    def report_count(self) -> int:
        """How many ends wait to be reported."""
        return len(self._reports)

    def has_few_unsent(self, many: int) -> bool:
        """Whether something waits to be sent, but fewer than `many`, and more than that runs."""
        return 0 < self._unsent < min(many, len(self.running))

    @property
    def _unsent(self) -> int:
        return len(self._reports) + sum(map(len, self._releases.values()))

    def count_heartbeat(self) -> Sequence[ClaimedJob]:
        """Count a heartbeat; return the jobs that now run long enough to be logged."""
        for running in self.running.values():
            running.heartbeats += 1
        return [
            one.job for one in self.running.values() if one.heartbeats == _HEARTBEATS_BEFORE_LOG
        ]

    def snapshot(self) -> ClaimSnapshot:
        """Return what the answer to a heartbeat is compared with."""
        return ClaimSnapshot(frozenset(self.running), frozenset(self._known))

    def request(self, count: int, now: datetime) -> list[ClaimId]:
        """Create ids for claims that will be requested."""
        claims = ids.mint_claims(now, self._rng, count)
        self._known.update(claims)
        return claims

    def start(self, job: ClaimedJob, now: float) -> RunningClaim:
        """Add a claim that was granted and runs from now on."""
        running = self.running[job.claim] = RunningClaim(job, now)
        return running

    def end(self, running: RunningClaim, report: AttemptReport | None) -> None:
        """End a running claim; None: its command never ran, or was not judged by its end."""
        claim = running.job.claim
        running.has_ended = True
        del self.running[claim]
        if running.disposition is Disposition.DROP:
            self._known.discard(claim)
        elif running.disposition is Disposition.REPORT and report is not None:
            self._reports.append(report)
        else:
            self._add_releases(running.loss, [running.job.ref])

    def release_unknown(self, refs: Iterable[ClaimRef]) -> None:
        """Add claims that the store counts as this agent's and that nothing here runs."""
        refs = list(refs)
        self._add_releases(None, refs)
        self._known.update(ref.claim for ref in refs)

    def take_reports(self) -> list[AttemptReport]:
        """Return the ends to report, each once; they count until they are forgotten."""
        reports, self._reports = self._reports, []
        self._sent.update(report.claim for report in reports)
        return reports

    def take_releases(self) -> dict[LossKind | None, list[ClaimRef]]:
        """Return the claims to release, each once, by how they were lost; they count, too."""
        releases, self._releases = self._releases, {}
        self._sent.update(ref.claim for refs in releases.values() for ref in refs)
        return releases

    def forget(self, claims: Iterable[ClaimId]) -> None:
        """Forget claims that the store has answered for, or never granted."""
        claims = list(claims)
        self._known.difference_update(claims)
        self._sent.difference_update(claims)

    def _add_releases(self, loss: LossKind | None, refs: Iterable[ClaimRef]) -> None:
        self._releases.setdefault(loss, []).extend(refs)

    def forget_all(self) -> None:
        """Forget everything: the store has reaped this session."""
        for running in self.running.values():
            running.disposition = Disposition.DROP
        self._reports.clear()
        self._releases.clear()
        self._sent.clear()
        self._known = set(self.running)


_MANY_REPORTS: Final = 200
"""This many ends are worth a call of their own beside the one that is under way."""


class ClaimExchange:
    """Reports and claims, one call at a time, and one more call for many reports beside it."""

    def __init__(self, dependencies: AgentDependencies, claims: Claims, retry: StoreRetry) -> None:
        self._dependencies = dependencies
        self._claims = claims
        self._retry = retry
        self._is_under_way = False
        self._has_many = asyncio.Event()
        self.last_report_count = 0
        """How many ends the last call has reported."""

    async def release(self, key: SessionKey) -> None:
        """Release the claims that other workers are to run."""
        releases, store = self._claims.take_releases(), self._dependencies.store
        for loss, refs in releases.items():
            await self._retry.call(functools.partial(store.release, key, refs, loss))
            self._dependencies.metrics.released_claims += len(refs)
            self._claims.forget(ref.claim for ref in refs)

    async def exchange(self, key: SessionKey, claims: Sequence[ClaimId]) -> Sequence[ClaimedJob]:
        """Report all ends and request these claims, a slot each; return the granted ones."""
        clock, metrics = self._dependencies.clock, self._dependencies.metrics
        reports = self._claims.take_reports()
        self.last_report_count = len(reports)
        granted: Sequence[ClaimedJob] = ()
        sent_at = clock.monotonic()
        self._is_under_way = True
        try:
            granted = await self._complete(key, reports, claims)
        finally:
            self._is_under_way = False
            self._dependencies.slots.give_back(len(claims) - len(granted))
            self._claims.forget(set(claims) - {job.claim for job in granted})
        if claims:
            metrics.claims += len(granted)
            metrics.claim_latency_seconds.observe(clock.monotonic() - sent_at)
        return granted

    def report_added(self) -> None:
        """Wake `wait_for_many_reports` if there are many."""
        if self._claims.report_count >= _MANY_REPORTS:
            self._has_many.set()

    async def wait_for_many_reports(self) -> None:
        """Wait until many ends have gathered."""
        await self._has_many.wait()
        self._has_many.clear()

    async def report_in_parallel(self, key: SessionKey) -> None:
        """Report many ends, if a call is under way that does not have them."""
        if self._is_under_way and self._claims.report_count >= _MANY_REPORTS:
            await self._complete(key, self._claims.take_reports(), ())

    async def _complete(
        self, key: SessionKey, reports: Sequence[AttemptReport], claims: Sequence[ClaimId]
    ) -> Sequence[ClaimedJob]:
        store, metrics = self._dependencies.store, self._dependencies.metrics

        async def call() -> Sequence[ClaimedJob]:
            if reports:
                reply = await store.complete(key, reports, claims)
                metrics.reports_answered(reports, reply.answers)
                return reply.claimed
            return await store.claim(key, claims) if claims else ()

        claimed = await self._retry.call(call)
        self._claims.forget(report.claim for report in reports)
        return claimed


_INITIAL_BATCH: Final = 32
_MIN_BATCH: Final = 4


class ClaimBatchSize:
    """How many claims to request: doubles while all are granted, else twice what was granted."""

    def __init__(self, slots: int) -> None:
        self._max = max(_INITIAL_BATCH, slots // 2)
        self._size = _INITIAL_BATCH
        self._has_slots_left = False

    def limit(self, free: int) -> int:
        """Return how many of the free slots to request claims for."""
        requested = min(free, self._size, self._max)
        self._has_slots_left = requested < free
        return requested

    def adjust(self, *, requested: int, granted: int) -> bool:
        """Learn from an answer; whether there are slots left and maybe more jobs for them."""
        if not requested:
            return False
        wider = max(_MIN_BATCH, 2 * granted)
        # The free slots may have been fewer than the batch: then the batch keeps its size.
        is_all = granted == requested
        self._size = max(self._size, wider) if is_all else min(self._size, wider)
        return is_all and self._has_slots_left

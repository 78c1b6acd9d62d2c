"""The maintainer: the background process that moves jobs which no worker moves.

Several processes may run a `Maintainer` on one store; the store elects one of them for
`LEASE_SECONDS` at a time. Two at once would be harmless, only wasteful.

One step of the elected maintainer:

    every step      promote     queue jobs that are due
                    propagate   apply ends to downstream jobs and groups
    every round     elect       renew its own lease
                    reap        requeue the claims of workers whose lease has expired
                    expire      end jobs whose deadline has passed
    every 60 rounds reap orphans, and audit for jobs that wait although their upstreams have ended

Beside the steps, which must not wait for it, it refreshes the scan starts of the store four times a
second.

A round takes one second, or less if a worker has a lease shorter than eight rounds: `LeaseObserver`
needs at least four observations per lease. Steps repeat at once while they move jobs; otherwise the
maintainer waits for a notification. A store that does not answer is asked again after a second.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import structlog

from workron.core import errors, lease
from workron.retry import RetryBackoff, retry
from workron.telemetry.logging import STORE_OUTAGE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from workron.core.clock import Clock
    from workron.core.lease import WorkerHeartbeat
    from workron.store.api import MaintainerStore


class Duty(StrEnum):
    """A duty that moves jobs; its value is the name of the store's verb."""

    PROMOTE = "promote"
    PROPAGATE = "propagate"
    REAP = "reap"
    REAP_ORPHANS = "reap_orphans"
    EXPIRE = "expire"


_log = structlog.get_logger(__name__)
LEASE_SECONDS: Final = 10.0
"""How long an elected maintainer stays elected after its last round."""
_BATCH: Final = 1_000
_AUDIT_EVERY: Final = 60
"""Rounds between two audits, which read many rows."""
_ROUND_SECONDS: Final = 1.0
_ROUNDS_PER_LEASE: Final = 8
"""Rounds per lease; `LeaseObserver` trusts observations at most a quarter of a lease apart."""
_POLL_SECONDS: Final = 0.5
_RESIGN_SECONDS: Final = 1.0
_REFRESH_SECONDS: Final = 0.25
_BATCH_SECONDS: Final = 0.02
"""Ends within this time are propagated together rather than one by one."""


class MaintainerMetrics:
    """The counts and the health of one maintainer, as plain numbers.

    They are always counted. `workron.cli.maintainer_exporter` offers them to Prometheus.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._round_at = clock.monotonic()
        self._has_round = False
        self._is_elected = False
        self.why_hopeless: str | None = None
        """Why the maintainer has failed for good; an unavailable store is not a reason."""
        self.moved: Counter[Duty] = Counter(dict.fromkeys(Duty, 0))
        """Jobs moved, by duty."""
        self.reaped_workers = 0
        self.missed_jobs = 0
        """Jobs that audits found waiting although all their upstreams have ended."""

    def round_completed(self, *, is_elected: bool) -> None:
        """Note that the election was checked, and that the elected maintainer did its work."""
        self._is_elected = is_elected
        self._round_at = self._clock.monotonic()
        self._has_round = True

    def count(self, duty: Duty, moved: int) -> int:
        """Count the jobs that a duty has moved, and return their number."""
        self.moved[duty] += moved
        return moved

    @property
    def round_age(self) -> float:
        """Seconds since the last completed round; before the first one, since the start."""
        return self._clock.monotonic() - self._round_at

    @property
    def is_elected(self) -> bool:
        """Whether this maintainer is elected and has renewed its lease in time."""
        return self._is_elected and self.round_age < LEASE_SECONDS

    def why_not_ready(self) -> str | None:
        """Return why it cannot do its work; None if it can. A standby is ready, too."""
        if not self._has_round:
            return "no round is completed yet: the store has not answered so far"
        if (age := self.round_age) >= LEASE_SECONDS:
            return f"the last completed round is {age:.1f} s ago: the store does not answer"
        return None


class Maintainer:
    """A candidate for election, and the maintenance that it does while it is elected.

    `holder` is the boot id of the process, so that proof of its death also ends its election.
    """

    def __init__(
        self,
        store: MaintainerStore,
        clock: Clock,
        holder: UUID,
        metrics: MaintainerMetrics | None = None,
        round_seconds: float = _ROUND_SECONDS,
    ) -> None:
        self._metrics = metrics or MaintainerMetrics(clock)
        self._store = store
        self._clock = clock
        self._holder = holder
        self._leases = lease.LeaseObserver()
        self._longest_round = self._round_seconds = round_seconds
        self._next_round = clock.monotonic()
        self._is_elected = False
        self._rounds = 0
        self._audited = 0

    async def run(self, wait_for_work: Callable[[float], Awaitable[None]]) -> None:
        """Maintain until cancelled; a store that does not answer is asked again."""
        refreshing = asyncio.create_task(self._refresh_scan_starts())
        try:
            while not refreshing.done():
                if not await self._step_with_retry():
                    await wait_for_work(min(_POLL_SECONDS, self._round_seconds))
                    await asyncio.sleep(_BATCH_SECONDS)
            # It ends by an error that is not the store's.
            await refreshing
        except Exception as error:
            why = str(error) or type(error).__name__
            self._metrics.why_hopeless = f"this maintainer has failed: {why}"
            raise
        finally:
            refreshing.cancel()
            await asyncio.gather(refreshing, return_exceptions=True)
            # If this fails, a successor has to wait until the lease of this one has expired.
            with contextlib.suppress(errors.StoreError, TimeoutError):
                async with asyncio.timeout(_RESIGN_SECONDS):
                    await self._store.resign(self._holder)

    async def step(self) -> int:
        """Do a bounded part of each duty that is due, and return how many jobs moved."""
        moved = 0
        began = self._clock.monotonic()
        if began >= self._next_round:
            is_elected = await self._store.elect(self._holder, LEASE_SECONDS)
            if is_elected != self._is_elected:
                _log.info("maintainer elected" if is_elected else "maintainer lost election")
            self._is_elected = is_elected
            if is_elected:
                moved += await self._round()
            self._next_round = began + self._round_seconds
            self._metrics.round_completed(is_elected=self._is_elected)
        if self._is_elected:
            moved += self._metrics.count(Duty.PROMOTE, await self._store.promote(_BATCH))
            moved += self._metrics.count(Duty.PROPAGATE, await self._store.propagate(_BATCH))
        return moved

    async def _refresh_scan_starts(self) -> None:
        while True:
            if self._is_elected:
                # Any error is retried: without it, claims are slower and nothing else.
                await retry(
                    self._store.refresh_scan_starts,
                    errors=errors.StoreError,
                    backoff=RetryBackoff(self._longest_round, self._longest_round),
                    on_retry=_log_retry,
                )
            await asyncio.sleep(_REFRESH_SECONDS)

    async def _step_with_retry(self) -> int:
        return await retry(
            self.step,
            errors=(errors.StoreUnreachableError, errors.StoreBusyError),
            backoff=RetryBackoff(self._longest_round, self._longest_round),
            on_retry=_log_retry,
        )

    async def _round(self) -> int:
        """Do what is not needed after every end of a job."""
        workers = await self._store.list_heartbeats()
        leases = [one.lease_seconds / _ROUNDS_PER_LEASE for one in workers]
        self._round_seconds = min([self._longest_round, *leases])
        moved = 0
        for worker in self._leases.observe(self._clock.monotonic(), workers):
            moved += await self._reap(worker)
        moved += self._metrics.count(Duty.EXPIRE, await self._store.expire(_BATCH))
        if self._rounds % _AUDIT_EVERY == 0:
            moved += self._metrics.count(Duty.REAP_ORPHANS, await self._store.reap_orphans(_BATCH))
            audited = await self._store.audit(_BATCH, after=self._audited)
            self._audited = audited.last
            if audited.missed:
                self._metrics.missed_jobs += audited.missed
                _log.error("jobs wait although their upstreams have ended", count=audited.missed)
        self._rounds += 1
        return moved

    async def _reap(self, worker: WorkerHeartbeat) -> bool:
        reaped = await self._store.reap(worker.worker, version=worker.version)
        if reaped.was_reaped:
            _log.info("worker reaped", worker=worker.name)
            self._metrics.reaped_workers += 1
            self._metrics.count(Duty.REAP, len(reaped.requeued) + len(reaped.failed))
        return reaped.was_reaped


def _log_retry(error: Exception, _: float) -> None:
    _log.warning("maintenance failed, retrying", event_id=STORE_OUTAGE, error=str(error))

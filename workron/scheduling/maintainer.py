"""Maintain: what only one process at a time does, so that nothing is stuck for ever.

Called by `workron run`, beside its worker, and by `workron maintain`. Two maintainers at once are
harmless; the elected one spares the store the work of the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import structlog

from workron.core import errors, lease

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from uuid import UUID

    from workron.core.clock import Clock
    from workron.store.api import MaintainerStore
    from workron.store.types import WorkerHeartbeat


class Duty(StrEnum):
    """What moves jobs; each is the verb of the store that does it."""

    PROMOTE = "promote"
    SETTLE = "settle"
    REAP = "reap"
    REAP_ORPHANS = "reap_orphans"
    EXPIRE = "expire"


class MaintainerMeter:
    """Hears of a maintainer; as it stands, it lets all of it be."""

    def round_over(self, *, is_elected: bool) -> None:
        """Hear that the store was asked who holds the office, and the holder's round was done."""

    def moved(self, duty: Duty, count: int) -> None:
        """Hear how many jobs one step of a duty has moved."""

    def reaped(self) -> None:
        """Hear that a worker was reaped."""

    def missed(self, count: int) -> None:
        """Hear how many jobs wait though all their upstreams have ended."""

    def gave_up(self, error: BaseException) -> None:
        """Hear that the maintainer has failed and does nothing any more."""


NO_METER: Final = MaintainerMeter()


_log = structlog.get_logger(__name__)
LEASE_SECONDS: Final = 10.0
"""Of the office: so long after its last round its holder counts as gone."""
_BATCH: Final = 1_000
_AUDIT_EVERY: Final = 60
"""So many rounds apart is looked for what should never be there; it reads much."""
_ROUND_SECONDS: Final = 1.0
_ROUNDS_PER_LEASE: Final = 8
"""`lease.Watch` believes looks that are at most a quarter of a lease apart."""
_POLL_SECONDS: Final = 0.5
_FAREWELL_SECONDS: Final = 1.0
_BREATH_SECONDS: Final = 0.02
"""A burst of ends is taken together, rather than one by one."""


class Maintainer:
    """One candidate for the office, and its work while it holds it.

    `holder` is the boot of the process, so that whoever proves that dead can vacate the office.
    """

    def __init__(
        self,
        door: MaintainerStore,
        clock: Clock,
        holder: UUID,
        meter: MaintainerMeter = NO_METER,
    ) -> None:
        self._door = door
        self._clock = clock
        self._holder = holder
        self._meter = meter
        self._watch = lease.LeaseObserver()
        self._round_seconds = _ROUND_SECONDS
        self._next_round = clock.monotonic()
        self._is_elected = False
        self._rounds = 0
        self._audited = 0

    async def run(self, wait_for_work: Callable[[float], Awaitable[None]]) -> None:
        """Maintain for ever; a store that does not answer is asked again."""
        try:
            while True:
                if not await self._try_step():
                    await wait_for_work(min(_POLL_SECONDS, self._round_seconds))
                    await asyncio.sleep(_BREATH_SECONDS)
        except Exception as error:
            self._meter.gave_up(error)
            raise
        finally:
            # Unheard, it costs a successor the wait for what it held.
            with contextlib.suppress(errors.StoreError, TimeoutError):
                async with asyncio.timeout(_FAREWELL_SECONDS):
                    await self._door.resign(self._holder)

    async def step(self) -> int:
        """Do one bounded piece of each duty that is due; answer how many rows moved."""
        moved = 0
        began = self._clock.monotonic()
        if began >= self._next_round:
            await self._stand()
            if self._is_elected:
                moved += await self._round()
            self._next_round = began + self._round_seconds
            self._meter.round_over(is_elected=self._is_elected)
        if self._is_elected:
            moved += self._told(Duty.PROMOTE, await self._door.promote(_BATCH))
            moved += self._told(Duty.SETTLE, await self._door.propagate(_BATCH))
        return moved

    async def _stand(self) -> None:
        """Stand for election, and say if something came of it."""
        is_elected = await self._door.elect(self._holder, LEASE_SECONDS)
        if is_elected != self._is_elected:
            _log.info("maintainer was elected" if is_elected else "another maintainer was elected")
        self._is_elected = is_elected

    async def _try_step(self) -> int:
        try:
            return await self.step()
        except (errors.StoreUnreachableError, errors.StoreBusyError) as error:
            _log.warning("maintenance is late", error=str(error))
            await asyncio.sleep(_ROUND_SECONDS)
            return 0

    async def _round(self) -> int:
        """Do what need not be done at every end of a job."""
        sightings = await self._door.list_heartbeats()
        leases = [one.lease_seconds / _ROUNDS_PER_LEASE for one in sightings]
        self._round_seconds = min([_ROUND_SECONDS, *leases])
        moved = 0
        for fallen in self._watch.observe(self._clock.monotonic(), sightings):
            moved += await self._reap(fallen)
        moved += self._told(Duty.EXPIRE, await self._door.expire(_BATCH))
        if self._rounds % _AUDIT_EVERY == 0:
            moved += self._told(Duty.REAP_ORPHANS, await self._door.reap_orphans(_BATCH))
            await self._audit()
        self._rounds += 1
        return moved

    async def _reap(self, fallen: WorkerHeartbeat) -> bool:
        reaped = await self._door.reap(fallen.worker, version=fallen.version)
        _log.info("worker was reaped", worker=fallen.name, was_reaped=reaped.was_reaped)
        if reaped.was_reaped:
            self._meter.reaped()
            self._told(Duty.REAP, len(reaped.requeued) + len(reaped.failed))
        return reaped.was_reaped

    async def _audit(self) -> None:
        audited = await self._door.audit(_BATCH, after=self._audited)
        self._audited = audited.last
        if audited.missed:
            self._meter.missed(audited.missed)
            _log.error("jobs wait though their upstreams have ended", count=audited.missed)

    def _told(self, duty: Duty, moved: int) -> int:
        self._meter.moved(duty, moved)
        return moved


async def reap_proven(
    door: MaintainerStore, is_dead: Callable[[WorkerHeartbeat], Awaitable[bool]]
) -> Sequence[WorkerHeartbeat]:
    """Reap each worker whose death is proven, its commands' included; answer which these are."""
    dead = []
    for worker in await door.list_heartbeats():
        if await is_dead(worker):
            # Its jobs are not to blame, and nothing loops: a person has to start the next run.
            await door.reap(worker.worker, version=None, charge_losses=False)
            dead.append(worker)
    return dead

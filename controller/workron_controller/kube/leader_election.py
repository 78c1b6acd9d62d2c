"""Stands for election, and says who may believe that it leads.

Called by whoever leads. No clock of another machine is believed. A holder is gone when *we* saw its
record stand still for as long as it promised to renew it; and a leader stops believing in itself
earlier than that, counted from when it *sent* its last renewal that was answered. So two never lead
at once, as long as their clocks run equally fast within the difference between the two times.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

import structlog

from workron_controller.kube import errors
from workron_controller.kube.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from datetime import datetime

    from workron.core.clock import Clock, Rng, Sleep
    from workron_controller.kube.client import ApiClient


_log = structlog.get_logger(__name__)
_TRIES_TO_LEAVE: Final = 2
"""A renewal that was on its way when we stopped may come between reading and writing."""


@dataclass(frozen=True, slots=True)
class ElectionTiming:
    """Seconds. After a crash a successor leads when `lasts` and two looks are over, at most."""

    lasts: int = 12
    """Nobody else leads for so long after a renewal."""
    believes: float = 8.0
    """So long after it sent its last renewal that was answered, a leader stops."""
    renews: float = 2.0
    """Between two renewals."""
    looks: float = 1.0
    """Between two looks of one that does not lead, or had no answer; at most."""
    waits: float = 3.0
    """For one answer, at most."""


class LeaderElection:
    """One candidate: stands for as long as `hold` runs, and tells who asks whether it leads."""

    def __init__(
        self,
        seat: LeaseLock,
        clock: Clock,
        rng: Rng,
        terms: ElectionTiming | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._seat = seat
        self._clock = clock
        self._rng = rng
        self._terms = terms or ElectionTiming()
        self._sleep = sleep
        self._until = -inf
        self._record: LeaseRecord | None = None
        self._since = inf
        self._turn = asyncio.Event()
        self._is_told_leading = False
        self._trouble = ""

    @property
    def is_leading(self) -> bool:
        """Whether this one leads now; ask right before doing what only one should do."""
        return self._clock.monotonic() < self._until

    async def wait(self, *, leading: bool) -> None:
        """Return once this one leads, or leads no more."""
        while self.is_leading is not leading:
            await self._turn.wait()

    async def hold(self) -> None:
        """Stand until cancelled; then step down at once, so that nobody waits for the lease."""
        try:
            while True:
                await self._try()
                self._tell()
                await self._sleep(self._pause())
                self._tell()
        finally:
            await self._step_down()

    async def _try(self) -> None:
        """Renew, or see whether there is anything to take; no answer changes nothing."""
        seconds = min(self._terms.waits, self._left) if self.is_leading else self._terms.waits
        try:
            async with asyncio.timeout(seconds):
                await self._stand()
        except (errors.ApiError, TimeoutError) as error:
            self._complain(str(error) or f"no answer came in {seconds:g} s")
        else:
            self._trouble = ""

    @property
    def _left(self) -> float:
        return max(0.0, self._until - self._clock.monotonic())

    async def _stand(self) -> None:
        if not self.is_leading or self._record is None:
            await self._look()
        record, now = self._record, self._clock.now()
        if record is not None and record.holder == self._seat.identity:
            await self._lead(self._seat.renew(record, now))
        elif record is None or self._is_free(record):
            await self._lead(self._seat.take(record, self._terms.lasts, now))

    async def _look(self) -> None:
        before, self._record = self._record, await self._seat.read()
        if before is None or self._record is None or self._record.spec != before.spec:
            # The clock is read after the answer: what that shows was written earlier.
            self._since = self._clock.monotonic()

    def _is_free(self, record: LeaseRecord) -> bool:
        return not record.holder or self._clock.monotonic() - self._since >= record.lasts

    async def _lead(self, write: Awaitable[LeaseRecord]) -> None:
        """Lead from when the write was sent, once it is answered; or somebody else was first."""
        sent_at = self._clock.monotonic()
        self._record = None
        with contextlib.suppress(errors.ConflictError):
            self._record = await write
            self._until = sent_at + self._terms.believes

    def _pause(self) -> float:
        look = self._terms.looks * (1 + self._rng.random()) / 2
        if self.is_leading:
            return min(look if self._trouble else self._terms.renews, self._left)
        return look

    def _tell(self) -> None:
        if self.is_leading is not self._is_told_leading:
            self._is_told_leading = self.is_leading
            _log.info("leads" if self.is_leading else "leads no more", who=self._seat.identity)
            self._turn.set()
            self._turn = asyncio.Event()

    def _complain(self, why: str) -> None:
        """Say what is in the way, once for as long as it is the same."""
        if why != self._trouble:
            _log.warning("election had no answer", lease=str(self._seat.place), error=why)
        self._trouble = why

    async def _step_down(self) -> None:
        has_led, self._until = self._until > -inf, -inf
        self._tell()
        if has_led:
            with contextlib.suppress(errors.ApiError, TimeoutError):
                async with asyncio.timeout(self._terms.waits):
                    await self._leave()

    async def _leave(self) -> None:
        for _ in range(_TRIES_TO_LEAVE):
            record = await self._seat.read()
            if record is None or record.holder != self._seat.identity:
                return
            with contextlib.suppress(errors.ConflictError):
                await self._seat.leave(record, self._clock.now())
                return


LEASES: Final = Resource("coordination.k8s.io", "v1", "leases")


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What the object says."""

    version: str
    spec: Mapping[str, Any]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> LeaseRecord:
        """Read it from an answer."""
        return cls(body["metadata"]["resourceVersion"], body.get("spec") or {})

    @property
    def holder(self) -> str:
        """Who sits there; nobody, if empty."""
        return self.spec.get("holderIdentity") or ""

    @property
    def lasts(self) -> float:
        """Seconds: the holder's own promise, as it may be of another version than we are."""
        return float(self.spec.get("leaseDurationSeconds") or 0)


class LeaseLock:
    """The object of one name, as one candidate uses it."""

    def __init__(self, server: ApiClient, namespace: str, name: str, identity: str) -> None:
        self._server = server
        self._about = {"namespace": namespace, "name": name}
        self._collection = LEASES.at(namespace)
        self.place: Final = LEASES.at(namespace, name)
        self.identity: Final = identity

    async def read(self) -> LeaseRecord | None:
        """Tell what it says, or that it was never made."""
        try:
            return LeaseRecord.of(await self._server.get(self.place))
        except errors.ObjectNotFoundError:
            return None

    async def take(self, before: LeaseRecord | None, lasts: int, now: datetime) -> LeaseRecord:
        """Sit down where nobody sits any more."""
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": lasts,
            "acquireTime": _stamp(now),
            "renewTime": _stamp(now),
            "leaseTransitions": before.spec.get("leaseTransitions", 0) + 1 if before else 0,
        }
        return await self._change(before, spec) if before else await self._make(spec)

    async def renew(self, before: LeaseRecord, now: datetime) -> LeaseRecord:
        """Stay."""
        return await self._change(before, {"renewTime": _stamp(now)})

    async def leave(self, before: LeaseRecord, now: datetime) -> None:
        """Stand up, so that whoever looks next may sit down at once."""
        await self._change(before, {"holderIdentity": "", "renewTime": _stamp(now)})

    async def _make(self, spec: dict[str, Any]) -> LeaseRecord:
        kind = {"apiVersion": f"{LEASES.group}/{LEASES.version}", "kind": "Lease"}
        body = {**kind, "metadata": self._about, "spec": spec}
        return LeaseRecord.of(await self._server.create(self._collection, body))

    async def _change(self, before: LeaseRecord, spec: dict[str, Any]) -> LeaseRecord:
        body = {"metadata": {"resourceVersion": before.version}, "spec": spec}
        return LeaseRecord.of(await self._server.patch(self.place, body))


def _stamp(moment: datetime) -> str:
    """Word a time as the API takes it: with microseconds, even where there are none."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

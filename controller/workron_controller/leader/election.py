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
from typing import TYPE_CHECKING, Final

import structlog

from workron_controller.api import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from workron.core.ports import Clock, Rng, Sleep
    from workron_controller.leader.seat import Record, Seat

_log = structlog.get_logger(__name__)
_TRIES_TO_LEAVE: Final = 2
"""A renewal that was on its way when we stopped may come between reading and writing."""


@dataclass(frozen=True, slots=True)
class Terms:
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


class Election:
    """One candidate: stands for as long as `hold` runs, and tells who asks whether it leads."""

    def __init__(
        self,
        seat: Seat,
        clock: Clock,
        rng: Rng,
        terms: Terms | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._seat = seat
        self._clock = clock
        self._rng = rng
        self._terms = terms or Terms()
        self._sleep = sleep
        self._until = -inf
        self._record: Record | None = None
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

    def _is_free(self, record: Record) -> bool:
        return not record.holder or self._clock.monotonic() - self._since >= record.lasts

    async def _lead(self, write: Awaitable[Record]) -> None:
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

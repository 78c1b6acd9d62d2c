"""The beats of an agent, and what follows when they are answered, refused, or not heard at all.

Called by `loop`, on a task of its own, so that no exchange of claims delays a beat.
"""

from __future__ import annotations

import asyncio
import contextlib
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from workron.core import errors, lease
from workron_worker import claims

if TYPE_CHECKING:
    from workron.core.ids import SessionKey
    from workron.store.types import Session
    from workron_worker.claims import Claims, HeartbeatActions
    from workron_worker.config import AgentConfig, AgentDependencies


_log = structlog.get_logger(__name__)
_LAST_SHARE: Final = 0.25
"""Of the margin: with so much of it left the executor kills what still runs. What was before it was
for TERM and a grace; this is for the kill and for clocks that do not run equally fast."""
_AGAIN_SECONDS: Final = 0.25
"""After a beat that was not answered: an outage of seconds must not cost what runs its lease."""


class HeartbeatHandler(Protocol):
    """What the pulse moves."""

    def obey(self, orders: HeartbeatActions) -> None:
        """Do what the answer to a beat asks."""

    def drain(self) -> None:
        """Claim nothing any more."""

    def lose(self) -> None:
        """Stop everything: the store knows this session no more."""

    def cut_off(self) -> None:
        """Stop what must not outlive the lease: the store may give it to another worker."""


class Heartbeat:
    """Beats for one session after another."""

    def __init__(
        self, around: AgentDependencies, rhythm: AgentConfig, ledger: Claims, body: HeartbeatHandler
    ) -> None:
        self._around = around
        self._rhythm = rhythm
        self._ledger = ledger
        self._body = body
        self._key: SessionKey | None = None
        self._deadline = lease.LeaseDeadline(inf, 0, 0)
        self._begun = asyncio.Event()

    @property
    def is_late(self) -> bool:
        """Whether the lease may be over, so that nothing must run and nothing may start."""
        return self._deadline.has_passed(self._around.clock.monotonic())

    def begin(self, session: Session, sent_at: float) -> None:
        """Beat for this session, which was asked for at `sent_at`."""
        margin = min(self._rhythm.margin.total_seconds(), session.lease_seconds / 2)
        self._key = session.key
        self._extend(lease.LeaseDeadline(session.lease_seconds, margin, sent_at))
        self._around.meter.registered(session.lease_seconds, sent_at)
        self._begun.set()

    def end(self) -> None:
        """Beat for no session until there is a new one."""
        self._key = None

    async def run(self) -> None:
        """Beat for ever."""
        while True:
            # After a freeze this comes first, before a beat could be on its way.
            if self.is_late:
                self._body.cut_off()
            is_heard = self._key is None or await self._beat(self._key)
            pause = self._rhythm.heartbeat.total_seconds() if is_heard else _AGAIN_SECONDS
            await self._rest(min(pause, self._patience()))

    async def _rest(self, seconds: float) -> None:
        """Sleep, but not into a new session: its first beat frees what older boots held."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._begun.wait()
        self._begun.clear()

    async def _beat(self, key: SessionKey) -> bool:
        """Beat once; False when no answer came, so that the next beat is urgent."""
        before, sent_at = self._ledger.knowledge(), self._around.clock.monotonic()
        seconds = self._patience()
        try:
            async with asyncio.timeout(seconds):
                answer = await self._around.door.heartbeat(key)
        except (errors.StoreError, TimeoutError) as error:
            if key == self._key:
                self._miss(error, seconds)
            return False
        if key != self._key:
            return True
        self._extend(self._deadline.acknowledge(sent_at))
        self._around.meter.beaten(sent_at)
        self._body.obey(claims.read_heartbeat(answer, before, self._ledger.knowledge()))
        if answer.is_draining:
            self._body.drain()
        return True

    def _extend(self, deadline: lease.LeaseDeadline) -> None:
        """Live longer, and let live: the executor acts by itself where this process cannot."""
        self._deadline = deadline
        self._around.executor.hold_until(deadline.at + (1 - _LAST_SHARE) * deadline.margin_seconds)

    def _miss(self, error: Exception, seconds: float) -> None:
        if isinstance(error, errors.SessionError):
            _log.warning("worker was taken back", error=str(error))
            self._body.lose()
            return
        why = str(error) or f"no answer came in {seconds:.1f} s"
        _log.warning("beat was not answered", error=why)
        if self.is_late:
            self._body.cut_off()

    def _patience(self) -> float:
        """Wait for one answer a part of a lease, and never past the deadline."""
        share = self._deadline.lease_seconds / lease.HEARTBEATS_PER_LEASE
        left = self._deadline.at - self._around.clock.monotonic()
        return min(share, left) if left > 0 else share

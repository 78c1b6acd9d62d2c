"""Sends heartbeats on a task of their own, and acts when they are answered, refused or missed.

An answered heartbeat extends the lease from the moment at which it was *sent*. The agent assumes
that its lease may have expired at its deadline (`workron.core.lease`), a margin before the store
can reap it, and kills its commands then:

    sent_at                  deadline           kill by the executor      lease expires
       |-------------------------|----- 3/4 margin -----|---- 1/4 margin ----|
                       SIGTERM and grace by the agent    SIGKILL by the runner

The last quarter of the margin is for the kill itself and for clocks of different speed. The
executor acts even if this process is frozen.
"""

from __future__ import annotations

import asyncio
import contextlib
from math import inf
from typing import Final, Protocol

import structlog

from workron.core import errors, lease
from workron.core.ids import SessionKey
from workron.store.types import HeartbeatReply, Session
from workron.telemetry.logging import STORE_OUTAGE
from workron_worker.claims import Claims, ClaimSnapshot
from workron_worker.config import AgentConfig, AgentDependencies

_log = structlog.get_logger(__name__)
_KILL_MARGIN_SHARE: Final = 0.25
_RETRY_SECONDS: Final = 0.25
"""Short, so that an outage of seconds does not cost the lease."""


class HeartbeatHandler(Protocol):
    """The agent, as its heartbeat sees it."""

    def apply_heartbeat(self, reply: HeartbeatReply, before: ClaimSnapshot) -> None:
        """Do what the answer to a heartbeat asks for."""

    def session_lost(self) -> None:
        """Stop everything: the store has reaped this session."""

    def lease_may_have_expired(self) -> None:
        """Stop what must not outlive the lease: the store may give it to another worker."""


class Heartbeat:
    """The heartbeats of one session after another."""

    def __init__(
        self,
        dependencies: AgentDependencies,
        config: AgentConfig,
        claims: Claims,
        handler: HeartbeatHandler,
    ) -> None:
        self._dependencies = dependencies
        self._config = config
        self._claims = claims
        self._handler = handler
        self._key: SessionKey | None = None
        self._deadline = lease.LeaseDeadline(inf, 0, 0)
        self._session_began = asyncio.Event()

    @property
    def is_late(self) -> bool:
        """Whether the lease may have expired, so that nothing may run or start."""
        return self._deadline.has_passed(self._dependencies.clock.monotonic())

    def begin(self, session: Session, sent_at: float) -> None:
        """Send heartbeats for this session, whose registration was sent at `sent_at`."""
        margin = min(self._config.lease_margin.total_seconds(), session.lease_seconds / 2)
        self._key = session.key
        self._extend(lease.LeaseDeadline(session.lease_seconds, margin, sent_at))
        self._dependencies.metrics.session_began(session.lease_seconds, sent_at)
        self._session_began.set()

    def end(self) -> None:
        """Send none until the next session begins."""
        self._key = None

    async def run(self) -> None:
        """Send heartbeats forever."""
        while True:
            # After a freeze this comes before the next heartbeat can be answered.
            if self.is_late:
                self._handler.lease_may_have_expired()
            is_answered = self._key is None or await self._send(self._key)
            pause = self._config.heartbeat.total_seconds() if is_answered else _RETRY_SECONDS
            await self._sleep(min(pause, self._answer_timeout()))

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not into a new session: its first heartbeat reaps older ones of this name."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._session_began.wait()
        self._session_began.clear()

    async def _send(self, key: SessionKey) -> bool:
        """Send one heartbeat; False if it was not answered."""
        dependencies = self._dependencies
        before, sent_at = self._claims.snapshot(), dependencies.clock.monotonic()
        timeout_seconds = self._answer_timeout()
        try:
            async with asyncio.timeout(timeout_seconds):
                reply = await dependencies.store.heartbeat(key)
        except (errors.StoreError, TimeoutError) as error:
            if key == self._key:
                self._missed(error, timeout_seconds)
            return False
        if key != self._key:
            return True
        self._extend(self._deadline.acknowledge(sent_at))
        dependencies.metrics.heartbeat_answered(sent_at)
        self._handler.apply_heartbeat(reply, before)
        return True

    def _extend(self, deadline: lease.LeaseDeadline) -> None:
        self._deadline = deadline
        kill_at = deadline.at + (1 - _KILL_MARGIN_SHARE) * deadline.margin_seconds
        self._dependencies.executor.set_deadline(kill_at)

    def _missed(self, error: Exception, timeout_seconds: float) -> None:
        if isinstance(error, errors.SessionError):
            _log.warning("session lost", error=str(error))
            self._handler.session_lost()
            return
        reason = str(error) or f"no answer within {timeout_seconds:.1f} s"
        _log.warning("heartbeat not answered", event_id=STORE_OUTAGE, error=reason)
        if self.is_late:
            self._handler.lease_may_have_expired()

    def _answer_timeout(self) -> float:
        """Return a fraction of the lease, never past the deadline."""
        share = self._deadline.lease_seconds / lease.HEARTBEATS_PER_LEASE
        left = self._deadline.at - self._dependencies.clock.monotonic()
        return min(share, left) if left > 0 else share

"""Whether an agent can take work, judged by what it last told of itself.

Written by `metrics` as the agent goes, read on the thread that answers probes: each field is
written whole, so an answer is never older than the moment in which it was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workron.core.ports import Clock


class Vitals:
    """The signs of life of one agent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._beaten_at = clock.monotonic()
        self._lease_seconds: float | None = None
        self._why_no_lease = "this worker is not registered yet: the store has not answered so far"
        self._is_draining = False
        self.why_no_runner: str | None = None
        """What is known of a runner that is waited for."""
        self.why_hopeless: str | None = None
        """What ended the agent, if it can do nothing any more; an outage of the store does not."""

    def register(self, lease_seconds: float, sent_at: float) -> None:
        """Begin a session."""
        self._beaten_at = sent_at
        self._lease_seconds = lease_seconds

    def beat(self, sent_at: float) -> None:
        """Note a beat that was answered; answers may come in any order."""
        self._beaten_at = max(self._beaten_at, sent_at)

    def lose(self) -> None:
        """End the session."""
        self._why_no_lease = "the store took this worker's session back; it asks for a new one"
        self._lease_seconds = None

    def drain(self) -> None:
        """Take no work any more."""
        self._is_draining = True

    @property
    def beat_age(self) -> float:
        """Seconds since the last beat that was answered; before the first, since the start."""
        return self._clock.monotonic() - self._beaten_at

    def why_not_ready(self) -> str | None:
        """Say why it cannot take work; None if it can."""
        if self._is_draining:
            return "this worker is draining: it claims nothing any more"
        if self.why_no_runner is not None:
            return self.why_no_runner
        lease = self._lease_seconds
        if lease is None:
            return self._why_no_lease
        if (age := self.beat_age) >= lease:
            return f"the last answered beat is {age:.1f} s old, and the lease is {lease:g} s"
        return None

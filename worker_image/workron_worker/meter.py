"""The port through which an agent tells what happens to it, to be counted and judged elsewhere.

Called by `loop` and `pulse`; `metrics` fills it with what Prometheus reads. Nothing here waits, and
nothing that is told has an influence on the agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.store.types import AttemptReport, ReportResult


class WorkerMeter:
    """Hears of an agent; as it stands, it lets all of it be.

    Moments are those of the agent's monotonic clock.
    """

    def registered(self, lease_seconds: float, sent_at: float) -> None:
        """Hear that a session has begun, which was asked for at `sent_at`."""

    def beaten(self, sent_at: float) -> None:
        """Hear that a beat was answered."""

    def lost(self) -> None:
        """Hear that the store has taken the session back."""

    def awaits_runner(self, why: str) -> None:
        """Hear that there is nothing that could run a command, and why."""

    def found_runner(self) -> None:
        """Hear that there is."""

    def draining(self) -> None:
        """Hear that nothing is claimed any more."""

    def gave_up(self, error: BaseException) -> None:
        """Hear that the agent has failed and does nothing any more."""

    def claimed(self, count: int, seconds: float) -> None:
        """Hear how many claims were granted, and how long that took from asking to answer."""

    def began(self, count: int) -> None:
        """Hear that so many claims more occupy a slot each from now on."""

    def over(self) -> None:
        """Hear that it does so no more."""

    def spawned(self, seconds: float) -> None:
        """Hear how long it took to start a command."""

    def reported(self, ends: Sequence[AttemptReport], answers: Sequence[ReportResult]) -> None:
        """Hear what the store said to each of these ends."""

    def released(self, count: int) -> None:
        """Hear that claims were handed back."""

    def cut_off(self, count: int) -> None:
        """Hear that commands are ended because their lease may be over."""


NO_METER: Final = WorkerMeter()

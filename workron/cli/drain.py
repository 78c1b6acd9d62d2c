"""What signals do to a worker: the first drains it, the second ends what runs.

Made by `worker`. What still runs when the grace is over is ended, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from datetime import timedelta

    from workron.cli.interrupt import Stoppable

_log = structlog.get_logger(__name__)


class Timers(Protocol):
    """What calls later; an event loop does."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> object:
        """Call when so many seconds have passed."""


class Drain:
    """Hears signals for one worker."""

    def __init__(self, target: Stoppable, grace: timedelta, timers: Timers) -> None:
        self._target = target
        self._grace = grace
        self._timers = timers
        self._is_draining = False
        self._is_ending = False

    def hear(self, number: signal.Signals) -> None:
        """Drain, or if that was asked for before, end what runs."""
        if self._is_draining:
            self._end(f"another {number.name}")
            return
        self._is_draining = True
        seconds = self._grace.total_seconds()
        _log.info(
            "worker drains", signal=number.name, running=self._target.running, grace_seconds=seconds
        )
        self._target.drain()
        self._timers.call_later(seconds, self._end_late)

    def _end_late(self) -> None:
        self._end("the grace is over")

    def _end(self, why: str) -> None:
        if not self._is_ending:
            self._is_ending = True
            if running := self._target.running:
                _log.warning("what runs is ended and handed back", why=why, running=running)
            else:
                _log.warning("the store is waited for no longer", why=why)
            self._target.kill()

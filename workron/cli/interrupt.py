"""What signals do to a run: the first Ctrl-C drains it, the second kills; others kill at once.

`heard` is shared with the commands that serve until a signal ends them.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNAL_BASE: Final = 128


class Stoppable(Protocol):
    """What is stopped."""

    @property
    def running(self) -> int:
        """How many commands run."""

    def drain(self) -> None:
        """Begin nothing any more."""

    def kill(self) -> None:
        """End what runs and hand it back."""


class Interrupt:
    """Listens for signals, and remembers that there was one."""

    def __init__(self, target: Stoppable, say: Callable[[str], None]) -> None:
        self._target = target
        self._say = say
        self.exit_code: int | None = None
        """What the process ends with, if it was interrupted."""
        self.is_patient = True
        """Whether the first Ctrl-C lets what runs finish."""

    def listening(self) -> contextlib.AbstractContextManager[None]:
        """Handle the signals of this process meanwhile."""
        return heard(self._hear)

    def _hear(self, number: signal.Signals) -> None:
        is_patient = self.is_patient and self.exit_code is None and number is signal.SIGINT
        self.exit_code = self.exit_code or _SIGNAL_BASE + number
        jobs = _jobs(self._target.running)
        if is_patient:
            self._say(f"finishing {jobs}; press Ctrl-C again to end what runs")
            self._target.drain()
        else:
            self._say(f"ending {jobs}")
            self._target.kill()


@contextlib.contextmanager
def heard(hear: Callable[[signal.Signals], object], *, is_last: bool = False) -> Iterator[None]:
    """Have the signals that would end this process heard meanwhile.

    With `is_last` they are not heard afterwards, either: who is about to end need not be told to.
    """
    loop = asyncio.get_running_loop()
    for number in ENDING:
        loop.add_signal_handler(number, hear, number)
    try:
        yield
    finally:
        for number in ENDING:
            loop.remove_signal_handler(number)
            if is_last:
                signal.signal(number, signal.SIG_IGN)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"

"""A command that serves until a signal comes, and ends in order on one from its first moment on.

Called by `worker` and `maintain`. Before there is anything that a signal could drain, what the
command is about to do is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from workron.cli import exit_codes
from workron.cli.stores import Daemons, carry_out

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from datetime import timedelta
    from types import FrameType


STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
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


class RunSignals:
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
        return listening_for_signals(self._hear)

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
def listening_for_signals(
    hear: Callable[[signal.Signals], object], *, is_last: bool = False
) -> Iterator[None]:
    """Have the signals that would end this process heard meanwhile.

    With `is_last` they are not heard afterwards, either: who is about to end need not be told to.
    """
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, hear, number)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
            if is_last:
                signal.signal(number, signal.SIG_IGN)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


_log = structlog.get_logger(__name__)


class SignalledService:
    """Hears signals for one command, and hands them on once somebody else knows what to do."""

    def __init__(self, farewell: str) -> None:
        """Hear them from now on; `farewell` is what is logged of the first."""
        self._farewell = farewell
        self._task: asyncio.Task[Any] | None = None
        self._hear: Callable[[signal.Signals], object] = self._give_up
        self._is_over = False
        for number in STOP_SIGNALS:
            signal.signal(number, self._exit)

    def hand_over(self, hear: Callable[[signal.Signals], object]) -> None:
        """Let that hear all further signals."""
        self._hear = hear

    def carry_out(self, command: Coroutine[Any, Any, None]) -> None:
        """Run the command's coroutine to its end, or until a signal has it given up."""
        carry_out(self._run(command))

    async def _run(self, command: Coroutine[Any, Any, None]) -> None:
        asyncio.get_running_loop().set_default_executor(Daemons())
        self._task = asyncio.current_task()
        with listening_for_signals(self._pass_on, is_last=True):
            try:
                await command
            except asyncio.CancelledError:
                if not self._is_over:
                    raise

    def _pass_on(self, number: signal.Signals) -> None:
        self._hear(number)

    def _give_up(self, number: signal.Signals) -> None:
        # Once: a second one would disturb what clears up.
        if self._task is not None and not self._is_over:
            self._say(number)
            # What is given up half-way has nobody left to hear how it ended.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            self._task.cancel()

    def _exit(self, number: int, _: FrameType | None) -> None:
        """End while there is nothing to clear up yet."""
        self._say(signal.Signals(number))
        raise SystemExit(exit_codes.OK)

    def _say(self, number: signal.Signals) -> None:
        self._is_over = True
        _log.info(self._farewell, signal=number.name)


class Timers(Protocol):
    """What calls later; an event loop does."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> object:
        """Call when so many seconds have passed."""


class DrainSignals:
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


_FIRST: Final = 1
_FIRST_PROCESS_SIGNAL_BASE: Final = 128


def handle_init_signals() -> None:
    """If this is the first process, end on signals as any other would, and keep no dead orphans."""
    if os.getpid() != _FIRST:
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    # Linux then buries all children by itself. How the runner ended is not known any more; it says.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _end(number: int, _: FrameType | None) -> None:
    os._exit(_FIRST_PROCESS_SIGNAL_BASE + number)

"""Signals: how `run`, `worker` and `maintain` stop on SIGINT, SIGTERM and SIGHUP.

`run`: the first Ctrl-C drains (running jobs finish), every further signal stops them at once.
`worker`: the first signal of any kind drains; a second one, or the end of --grace, stops running
jobs and requeues them. Before there is anything to drain, a signal cancels the command, and before
the event loop runs, it exits at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from workron.cli import exit_codes
from workron.cli.stores import DaemonThreads, run_command

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from datetime import timedelta
    from types import FrameType


STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNAL_BASE: Final = 128


class Stoppable(Protocol):
    """Workers that signals stop."""

    @property
    def running(self) -> int:
        """Number of running commands."""

    def drain(self) -> None:
        """Claim no more jobs; running ones finish."""

    def kill(self) -> None:
        """Stop running commands and requeue their jobs."""


class RunSignals:
    """Handles the signals of `workron run`."""

    def __init__(self, target: Stoppable, say: Callable[[str], None]) -> None:
        self._target = target
        self._say = say
        self.exit_code: int | None = None
        """Exit code of the process, if a signal came."""
        self.may_finish = True
        """Whether the first Ctrl-C lets running jobs finish."""

    def listening(self) -> contextlib.AbstractContextManager[None]:
        """Handle signals inside the block."""
        return listening_for_signals(self._handle)

    def _handle(self, number: signal.Signals) -> None:
        may_finish = self.may_finish and self.exit_code is None and number is signal.SIGINT
        self.exit_code = self.exit_code or _SIGNAL_BASE + number
        jobs = _jobs(self._target.running)
        if may_finish:
            self._say(f"finishing {jobs}; press Ctrl-C again to stop")
            self._target.drain()
        else:
            self._say(f"stopping {jobs}")
            self._target.kill()


@contextlib.contextmanager
def listening_for_signals(
    handle: Callable[[signal.Signals], object], *, is_last: bool = False
) -> Iterator[None]:
    """Handle the stop signals inside the block; with `is_last`, ignore them after it."""
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, handle, number)
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
    """Runs a long-running command, and stops it in order on a signal at any time."""

    def __init__(self, event: str) -> None:
        """Handle signals from now on, and log the first as `event`."""
        self._event = event
        self._task: asyncio.Task[Any] | None = None
        self._handle: Callable[[signal.Signals], object] = self._cancel
        self._is_stopping = False
        for number in STOP_SIGNALS:
            signal.signal(number, self._exit)

    def set_handler(self, handle: Callable[[signal.Signals], object]) -> None:
        """Pass all further signals to this function."""
        self._handle = handle

    def run(self, command: Coroutine[Any, Any, None]) -> None:
        """Run the command's coroutine to its end, or until a signal cancels it."""
        run_command(self._run(command))

    async def _run(self, command: Coroutine[Any, Any, None]) -> None:
        asyncio.get_running_loop().set_default_executor(DaemonThreads())
        self._task = asyncio.current_task()
        with listening_for_signals(self._pass_on, is_last=True):
            try:
                await command
            except asyncio.CancelledError:
                if not self._is_stopping:
                    raise

    def _pass_on(self, number: signal.Signals) -> None:
        self._handle(number)

    def _cancel(self, number: signal.Signals) -> None:
        # Only once: a second signal would interrupt the clean-up.
        if self._task is not None and not self._is_stopping:
            self._log_stop(number)
            # Errors of cancelled calls have no caller any more.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            self._task.cancel()

    def _exit(self, number: int, _: FrameType | None) -> None:
        """Exit before there is anything to clean up."""
        self._log_stop(signal.Signals(number))
        raise SystemExit(exit_codes.OK)

    def _log_stop(self, number: signal.Signals) -> None:
        self._is_stopping = True
        _log.info(self._event, signal=number.name)


class DrainSignals:
    """Handles the signals of `workron worker` once it can claim jobs."""

    def __init__(
        self,
        target: Stoppable,
        grace: timedelta,
        call_later: Callable[[float, Callable[[], object]], object],
    ) -> None:
        self._target = target
        self._grace = grace
        self._call_later = call_later
        self._is_draining = False
        self._is_killing = False

    def handle(self, number: signal.Signals) -> None:
        """Drain; if already draining, stop running jobs."""
        if self._is_draining:
            self._stop(f"another {number.name}")
            return
        self._is_draining = True
        seconds = self._grace.total_seconds()
        _log.info(
            "worker draining",
            signal=number.name,
            running=self._target.running,
            grace_seconds=seconds,
        )
        self._target.drain()
        self._call_later(seconds, self._stop_after_grace)

    def _stop_after_grace(self) -> None:
        self._stop("--grace expired")

    def _stop(self, why: str) -> None:
        if not self._is_killing:
            self._is_killing = True
            if running := self._target.running:
                _log.warning(
                    "stopping running jobs and requeueing them", reason=why, running=running
                )
            else:
                _log.warning("stopped waiting for the store", reason=why)
            self._target.kill()

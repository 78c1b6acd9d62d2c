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
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import structlog

from workron.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from datetime import timedelta
    from types import FrameType

    from workron.cli.local_workers import LocalWorkers


_P = ParamSpec("_P")
_T = TypeVar("_T")

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNAL_BASE: Final = 128
_log = structlog.get_logger(__name__)


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


class RunSignals:
    """Handles the signals of `workron run`."""

    def __init__(self, workers: LocalWorkers, say: Callable[[str], None]) -> None:
        self._workers = workers
        self._say = say
        self.exit_code: int | None = None
        """Exit code of the process, if a signal came."""
        self.may_finish = True
        """Whether the first Ctrl-C lets running jobs finish."""

    def handle(self, number: signal.Signals) -> None:
        """Drain or stop the workers."""
        may_finish = self.may_finish and self.exit_code is None and number is signal.SIGINT
        self.exit_code = self.exit_code or _SIGNAL_BASE + number
        count = self._workers.running
        jobs = "1 job" if count == 1 else f"{count} jobs"
        if may_finish:
            self._say(f"finishing {jobs}; press Ctrl-C again to stop")
            self._workers.drain()
        else:
            self._say(f"stopping {jobs}")
            self._workers.kill()


class SignalledService:
    """Runs a long-running command, and stops it in order on a signal at any time."""

    def __init__(self, event: str) -> None:
        """Handle signals from now on, and log the first as `event`."""
        self._event = event
        self._task: asyncio.Task[Any] | None = None
        self._is_stopping = False
        self.handle: Callable[[signal.Signals], object] = self._cancel
        """Gets every signal."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._exit)

    def run(self, command: Coroutine[Any, Any, None]) -> None:
        """Run the command's coroutine to its end, or until a signal cancels it."""
        asyncio.run(self._run(command))

    async def _run(self, command: Coroutine[Any, Any, None]) -> None:
        asyncio.get_running_loop().set_default_executor(DaemonThreads())
        self._task = asyncio.current_task()
        with listening_for_signals(self._dispatch, is_last=True):
            try:
                await command
            except asyncio.CancelledError:
                if not self._is_stopping:
                    raise

    def _dispatch(self, number: signal.Signals) -> None:
        self.handle(number)

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


class DaemonThreads(ThreadPoolExecutor):
    """Runs each call on a new daemon thread, so that a hanging call cannot delay the exit."""

    def submit(self, call: Callable[_P, _T], /, *args: _P.args, **named: _P.kwargs) -> Future[_T]:
        """Start a call."""
        future: Future[_T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call(*args, **named))
            except BaseException as error:  # noqa: BLE001 - the waiting caller gets it
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Return at once."""


class DrainSignals:
    """Handles the signals of `workron worker` once it can claim jobs."""

    def __init__(
        self,
        workers: LocalWorkers,
        grace: timedelta,
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._workers = workers
        self._grace_seconds = grace.total_seconds()
        self._call_later = call_later
        self._is_draining = False
        self._is_killing = False

    def handle(self, number: signal.Signals) -> None:
        """Drain; if already draining, stop running jobs."""
        if self._is_draining:
            self._stop(f"another {number.name}")
            return
        self._is_draining = True
        _log.info(
            "worker draining",
            signal=number.name,
            running=self._workers.running,
            grace_seconds=self._grace_seconds,
        )
        self._workers.drain()
        self._call_later(self._grace_seconds, lambda: self._stop("--grace expired"))

    def _stop(self, why: str) -> None:
        if self._is_killing:
            return
        self._is_killing = True
        if running := self._workers.running:
            _log.warning("stopping running jobs and requeueing them", reason=why, running=running)
        else:
            _log.warning("stopped waiting for the store", reason=why)
        self._workers.kill()

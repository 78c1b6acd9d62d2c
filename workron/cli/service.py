"""A command that serves until a signal comes, and ends in order on one from its first moment on.

Called by `worker` and `maintain`. Before there is anything that a signal could drain, what the
command is about to do is given up.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import structlog

from workron.cli import exit_codes
from workron.cli.daemons import Daemons
from workron.cli.interrupt import ENDING, heard
from workron.cli.opening import carry_out

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import FrameType

_log = structlog.get_logger(__name__)


class Service:
    """Hears signals for one command, and hands them on once somebody else knows what to do."""

    def __init__(self, farewell: str) -> None:
        """Hear them from now on; `farewell` is what is logged of the first."""
        self._farewell = farewell
        self._task: asyncio.Task[Any] | None = None
        self._hear: Callable[[signal.Signals], object] = self._give_up
        self._is_over = False
        for number in ENDING:
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
        with heard(self._pass_on, is_last=True):
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

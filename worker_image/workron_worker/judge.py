"""Tells from how a command ended what that means for its job.

Called by `runner_executor` once the last process is gone.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Final

from workron.core.states import Reason
from workron_worker import result
from workron_worker.executor import Ended, StartError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from workron_runner.refusal import Refusal
    from workron_worker.executor import Task

_NOT_FOUND: Final = 127
_SIGNAL_BASE: Final = 128


def ended(task: Task, code: int, output: bytes, value: Callable[[], Any]) -> Ended:
    """Judge a command that ended by itself; a negative code is the signal that ended it.

    `value` gives its result, or raises ResultError.
    """
    if code == 0:
        return _succeeded(output, value)
    if code < 0:
        message = f"the command was ended by {_signal_name(-code)}"
        return Ended(Reason.SIGNAL, message, _SIGNAL_BASE - code, output)
    if code == _NOT_FOUND and isinstance(task.command, str):
        message = "the shell did not find a command (exit code 127)"
        return Ended(Reason.COMMAND_NOT_FOUND, message, code, output)
    return Ended(Reason.EXIT_CODE, f"the command ended with exit code {code}", code, output)


def late(timeout: timedelta, output: bytes) -> Ended:
    """Judge a command that its timeout ended."""
    seconds = timeout.total_seconds()
    return Ended(Reason.TIMEOUT, f"the command ran longer than {seconds:g} s", None, output)


def out_of_memory(limit_bytes: int, peak_bytes: int, output: bytes) -> Ended:
    """Judge a command that was killed because memory ran short."""
    message = (
        f"the command was killed near the memory limit of {_mib(limit_bytes)} that it shares with "
        f"all that its worker runs; it used up to {_mib(peak_bytes)}"
    )
    return Ended(Reason.OUT_OF_MEMORY, message, _SIGNAL_BASE + signal.SIGKILL, output)


def killed(output: bytes) -> Ended:
    """Judge a command that was ended from outside."""
    return Ended(output=output, is_killed=True)


def overdue(output: bytes) -> Ended:
    """Judge a command that was ended because its agent had not been heard of in time."""
    return Ended(output=output, is_killed=True, is_overdue=True)


def refused(task: Task, why: Refusal) -> Ended:
    """Judge a start that failed; StartError if the job is not to blame."""
    if not why.is_fault_of_job:
        raise StartError(f"this machine cannot start commands: {why.what}")
    where = why.where or _first_word(task)
    # A relative one is refused as where it would have been.
    is_workdir = task.workdir and f"/{where}".endswith(f"/{task.workdir}")
    what = "its workdir " if is_workdir else ""
    message = f"the command could not be started: {what}{where!r}: {why.what}"
    return Ended(Reason.COMMAND_NOT_FOUND, message)


def _succeeded(output: bytes, value: Callable[[], Any]) -> Ended:
    try:
        left = value()
    except result.ResultError as error:
        return Ended(Reason.RESULT_REFUSED, str(error), 0, output)
    return Ended(exit_code=0, output=output, result=left)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _mib(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"


def _first_word(task: Task) -> str:
    return "sh" if isinstance(task.command, str) else task.command[0]

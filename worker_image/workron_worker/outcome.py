"""One attempt as it is with a runner, and what its runner's last word on it means.

Called by `runner_executor`; what the end of a command means for its job is said in `judge`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from workron_runner.messages import Ended as Told
from workron_runner.messages import Refused
from workron_runner.refusal import Refusal
from workron_worker import judge, result
from workron_worker.executor import StartError

if TYPE_CHECKING:
    from workron_worker.executor import Ended, OnEnd, OnOutput, Task


@dataclass(slots=True)
class Attempt:
    """What was asked for, and what was heard of it so far."""

    task: Task
    on_end: OnEnd
    on_output: OnOutput | None
    is_ordered: bool = False
    """Whether the runner was told of it, so that it is lost together with it."""
    is_killed: bool = False
    output: bytes = b""
    result: bytes = b""


def is_by_runner(told: Told | Refused) -> bool:
    """Whether the runner ended it by itself, if the agent did not ask for that."""
    return isinstance(told, Told) and told.because == "kill"


def of(attempt: Attempt, told: Told | Refused) -> Ended | Exception:
    """Say how an attempt ended, or why it did not begin."""
    try:
        if isinstance(told, Refused) and told.fault == "late":
            return judge.overdue(b"")
        if isinstance(told, Refused):
            return judge.refused(attempt.task, Refusal(told.fault == "job", told.what, told.where))
        ended = _judged(attempt, told)
        return msgspec.structs.replace(ended, start_seconds=told.start_seconds)
    except StartError as error:
        return error


def _judged(attempt: Attempt, told: Told) -> Ended:
    task = attempt.task
    if told.because == "timeout" and task.timeout is not None and not attempt.is_killed:
        return judge.late(task.timeout, attempt.output)
    if told.because == "memory" and told.limit_bytes is not None and not attempt.is_killed:
        return judge.out_of_memory(told.limit_bytes, told.peak_bytes, attempt.output)
    if told.because == "deadline":
        return judge.overdue(attempt.output)
    if told.because != "itself":
        return judge.killed(attempt.output)
    code = -(told.signal or 0) if told.exit_code is None else told.exit_code
    value = functools.partial(_value, attempt.result, told.result_error)
    return judge.ended(task, code, attempt.output, value)


def _value(raw: bytes, wrong: str | None) -> Any:
    if wrong is not None:
        raise result.ResultError(wrong)
    return result.parse(raw)

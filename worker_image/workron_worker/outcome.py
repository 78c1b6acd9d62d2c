"""Judges how a command ended: outcome, reason, message, result and retry of its attempt."""

from __future__ import annotations

import json
import math
import signal
from typing import TYPE_CHECKING, Any, Final, Never

from workron.core import errors, retry_policy
from workron.core.jobspec import OnLeaseLost
from workron.core.states import Reason
from workron.store.types import AttemptReport, Outcome
from workron_worker.executor import CommandEnd, CommandTask, StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import timedelta

    from workron.core.clock import Rng
    from workron.store.types import ClaimedJob
    from workron_runner.spawn import StartRefusal


LIMIT_DEPTH: Final = 64
"""Readers parse it some levels deeper, and every parser has a limit."""

_TOO_DEEP: Final = f"the result is nested too deeply: more than {LIMIT_DEPTH} levels"


class ResultError(errors.InputError):
    """The command wrote a result that is not acceptable."""


def parse_result(raw: bytes) -> Any:
    """Parse a result, None if it is empty; ResultError says what is wrong."""
    if not raw.strip():
        return None
    try:
        value = json.loads(raw, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise ResultError(_TOO_DEEP) from None
    except ValueError as error:
        raise ResultError(f"the result is not JSON: {error}") from None
    for text in _strings(value):
        _check_text(text)
    return value


def _refuse_constant(word: str) -> Never:
    raise ResultError(f"the result is not JSON: {word} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ResultError(f"the result has a number that is out of range: {digits[:40]}")
    return number


def _strings(value: Any) -> Iterator[str]:
    level = [value]
    for _ in range(LIMIT_DEPTH + 1):
        yield from (one for one in level if isinstance(one, str))
        containers = [one for one in level if isinstance(one, (dict, list))]
        if not containers:
            return
        level = [inner for one in containers for inner in _children(one)]
    raise ResultError(_TOO_DEEP)


def _children(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    if isinstance(container, dict):
        return [*container.keys(), *container.values()]
    return container


def _check_text(text: str) -> None:
    # PostgreSQL's jsonb stores neither; the rule is the same for all stores.
    if "\x00" in text:
        raise ResultError("the result has a string with a NUL character")
    if not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text):
        raise ResultError("the result has a string with half of a surrogate pair")


_NOT_FOUND: Final = 127
_SIGNAL_BASE: Final = 128


def outcome_of_exit(
    task: CommandTask, code: int, output: bytes, value: Callable[[], Any]
) -> CommandEnd:
    """Judge a command that exited; a negative code is the number of the signal that ended it.

    `value` returns its result, or raises ResultError.
    """
    if code == 0:
        return _succeeded(output, value)
    if code < 0:
        message = f"the command was ended by {_signal_name(-code)}"
        return CommandEnd(Reason.SIGNAL, message, _SIGNAL_BASE - code, output)
    if code == _NOT_FOUND and isinstance(task.command, str):
        message = "the shell did not find a command (exit code 127)"
        return CommandEnd(Reason.COMMAND_NOT_FOUND, message, code, output)
    return CommandEnd(Reason.EXIT_CODE, f"the command ended with exit code {code}", code, output)


def timed_out(timeout: timedelta, output: bytes) -> CommandEnd:
    """Judge a command that was killed by its timeout."""
    seconds = timeout.total_seconds()
    return CommandEnd(Reason.TIMEOUT, f"the command ran longer than {seconds:g} s", None, output)


def out_of_memory(limit_bytes: int, peak_bytes: int, output: bytes) -> CommandEnd:
    """Judge a command that was killed because memory ran short."""
    message = (
        f"the command was killed near the memory limit of {_mib(limit_bytes)} that all commands of "
        f"its worker share; it used up to {_mib(peak_bytes)}"
    )
    return CommandEnd(Reason.OUT_OF_MEMORY, message, _SIGNAL_BASE + signal.SIGKILL, output)


def was_killed(output: bytes) -> CommandEnd:
    """Judge a command that the agent has killed."""
    return CommandEnd(output=output, is_killed=True)


def past_deadline(output: bytes) -> CommandEnd:
    """Judge a command that the executor killed at its deadline."""
    return CommandEnd(output=output, is_killed=True, is_past_deadline=True)


def start_refused(task: CommandTask, refusal: StartRefusal) -> CommandEnd:
    """Judge a start that failed; StartError if the job is not at fault."""
    if not refusal.is_job_fault:
        raise StartError(f"this machine cannot start commands: {refusal.message}")
    path = refusal.path or _first_word(task)
    # The runner has resolved a relative workdir.
    is_workdir = task.workdir and f"/{path}".endswith(f"/{task.workdir}")
    prefix = "its workdir " if is_workdir else ""
    message = f"the command could not be started: {prefix}{path!r}: {refusal.message}"
    return CommandEnd(Reason.COMMAND_NOT_FOUND, message)


def _succeeded(output: bytes, value: Callable[[], Any]) -> CommandEnd:
    try:
        result = value()
    except ResultError as error:
        return CommandEnd(Reason.RESULT_REFUSED, str(error), 0, output)
    return CommandEnd(exit_code=0, output=output, result=result)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _mib(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"


def _first_word(task: CommandTask) -> str:
    return "sh" if isinstance(task.command, str) else task.command[0]


_TOO_LARGE: Final = (
    "the results of its upstream jobs are larger than 1 MiB together; let them return less, such as"
    " the path of a file"
)
_NO_RETRY: Final = retry_policy.Decision(is_retry=False)


def task_of(claimed: ClaimedJob) -> CommandTask:
    """Return what to run; ValueError if the spec cannot be read."""
    spec = claimed.spec.command
    return CommandTask(
        claim=claimed.claim,
        command=spec.argv or spec.command or "",
        environment={**spec.env, **_attempt_variables(claimed)},
        output_limit_bytes=spec.output_limit_bytes,
        stream_limit_bytes=spec.output_stream_bytes,
        inputs=claimed.inputs,
        workdir=spec.workdir,
        timeout=spec.timeout,
        outlives_lease=spec.on_lease_lost is OnLeaseLost.CONTINUE,
    )


def report_of(claimed: ClaimedJob, ended: CommandEnd, rng: Rng) -> AttemptReport:
    """Report how a command ended, and whether the job is retried."""
    decision = _decide(claimed, ended, rng)
    return AttemptReport(
        job=claimed.job,
        claim=claimed.claim,
        fence=claimed.fence,
        outcome=_outcome(ended, is_retry=decision.is_retry),
        reason=Reason.SIGNAL if ended.is_killed else ended.reason,
        message=ended.message,
        exit_code=ended.exit_code,
        delay_seconds=decision.delay.total_seconds(),
        result=ended.result,
        output=ended.output,
    )


def refuse_claim(claimed: ClaimedJob, reason: Reason, message: str) -> AttemptReport:
    """Report a claim that cannot be run."""
    return AttemptReport(claimed.job, *claimed.ref, Outcome.FAILED, reason, message)


def refuse_inputs(claimed: ClaimedJob) -> AttemptReport:
    """Report a claim whose inputs exceed the limit."""
    return refuse_claim(claimed, Reason.INPUTS_TOO_LARGE, _TOO_LARGE)


def _decide(claimed: ClaimedJob, ended: CommandEnd, rng: Rng) -> retry_policy.Decision:
    if ended.is_killed or ended.reason is None:
        return _NO_RETRY
    return retry_policy.decide(
        claimed.spec.command,
        failures=claimed.failures,
        exit_code=ended.exit_code,
        reason=ended.reason,
        rng=rng,
    )


def _outcome(ended: CommandEnd, *, is_retry: bool) -> Outcome:
    if is_retry:
        return Outcome.RETRY
    return Outcome.FAILED if ended.is_killed or ended.reason else Outcome.SUCCEEDED


def _attempt_variables(claimed: ClaimedJob) -> dict[str, str]:
    variables = {
        "WORKRON_JOB_ID": str(claimed.job),
        "WORKRON_ATTEMPT": str(claimed.attempt),
        "WORKRON_FENCE": str(claimed.fence),
    }
    if claimed.index is not None:
        variables["WORKRON_INDEX"] = str(claimed.index)
    if claimed.item is not None:
        variables["WORKRON_ITEM"] = _text(claimed.item)
    return variables


def _text(item: Any) -> str:
    """Format an item as a manifest would: `true`, `1.5`, and a string without quotes."""
    return item if isinstance(item, str) else json.dumps(item)

"""Judges how a command ended: outcome, reason, message, result and retry of its attempt."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
from collections.abc import Iterator, Mapping
from typing import Any, Final, Never

import msgspec

from workron.core import errors, retry_policy
from workron.core.clock import Rng
from workron.core.jobspec import Command, OnLeaseLost
from workron.core.states import Reason
from workron.store.types import AttemptReport, ClaimedJob, Outcome
from workron_runner.protocol import Ended, Refused
from workron_worker.executor import CommandEnd, CommandTask, StartError

LIMIT_DEPTH: Final = 64
"""Readers parse it some levels deeper, and every parser has a limit."""

_TOO_DEEP: Final = f"the result is nested too deeply: more than {LIMIT_DEPTH} levels"
_NOT_FOUND: Final = 127
_SIGNAL_BASE: Final = 128
INPUTS_TOO_LARGE: Final = (
    "the results of its upstream jobs are larger than 1 MiB together; let them return less, such as"
    " the path of a file"
)


class MissingVariableError(errors.InputError):
    """This process has no value for a variable that the job takes from its caller."""


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
    # PostgreSQL's jsonb stores neither; the rule is the same for all stores.
    for text in _strings(value):
        if "\x00" in text:
            raise ResultError("the result has a string with a NUL character")
        if not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text):
            raise ResultError("the result has a string with half of a surrogate pair")
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
        level = []
        for one in containers:
            level += one if isinstance(one, list) else [*one.keys(), *one.values()]
    raise ResultError(_TOO_DEEP)


def judge_end(
    task: CommandTask, ended: Ended, output: bytes, result: bytes, *, is_killed: bool
) -> CommandEnd:
    """Judge how a command ended; `is_killed`: the agent asked for that."""
    if ended.cause == "exit":
        end = _judge_exit(task, ended, output, result)
    elif ended.cause == "deadline":
        end = CommandEnd(output=output, is_killed=True, is_past_deadline=True)
    elif ended.cause == "timeout" and task.timeout is not None and not is_killed:
        message = f"the command ran longer than {task.timeout.total_seconds():g} s"
        end = CommandEnd(Reason.TIMEOUT, message, output=output)
    elif ended.cause == "memory" and ended.limit_bytes is not None and not is_killed:
        message = (
            f"the command was killed near the memory limit of {_mib(ended.limit_bytes)} that all"
            f" commands of its worker share; it used up to {_mib(ended.peak_bytes)}"
        )
        code = _SIGNAL_BASE + signal.SIGKILL
        end = CommandEnd(Reason.OUT_OF_MEMORY, message, code, output)
    else:
        end = CommandEnd(output=output, is_killed=True)
    return msgspec.structs.replace(end, start_seconds=ended.start_seconds)


def _judge_exit(task: CommandTask, ended: Ended, output: bytes, result: bytes) -> CommandEnd:
    code, number = ended.exit_code, ended.signal or 0
    if code is None:
        message = f"the command was ended by {_signal_name(number)}"
        return CommandEnd(Reason.SIGNAL, message, _SIGNAL_BASE + number, output)
    if code == _NOT_FOUND and isinstance(task.command, str):
        message = "the shell did not find a command (exit code 127)"
        return CommandEnd(Reason.COMMAND_NOT_FOUND, message, code, output)
    if code:
        message = f"the command ended with exit code {code}"
        return CommandEnd(Reason.EXIT_CODE, message, code, output)
    error = ended.result_error
    if error is None:
        try:
            return CommandEnd(exit_code=0, output=output, result=parse_result(result))
        except ResultError as refused:
            error = str(refused)
    return CommandEnd(Reason.RESULT_REFUSED, error, 0, output)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _mib(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"


def judge_refusal(task: CommandTask, refused: Refused) -> CommandEnd | StartError:
    """Judge a start that failed; StartError if the job is not at fault."""
    if refused.fault == "late":
        return CommandEnd(is_killed=True, is_past_deadline=True)
    if refused.fault != "job":
        return StartError(f"this machine cannot start commands: {refused.message}")
    program = (task.shell if isinstance(task.command, str) else task.command)[0]
    path = refused.path or program
    # The runner has resolved a relative workdir.
    if task.workdir and f"/{path}".endswith(f"/{task.workdir.rstrip('/')}"):
        what = f"its folder, workdir {path!r}: {refused.message}; create it, or change workdir"
    else:
        what = "its shell " * isinstance(task.command, str) + _describe_program(path, refused)
    message = f"the command could not be started: {what}"
    return CommandEnd(Reason.COMMAND_NOT_FOUND, message)


def _describe_program(path: str, refused: Refused) -> str:
    if "/" not in path and refused.message == os.strerror(errno.ENOENT):
        return f"{path!r} is in no folder of PATH; install it, or write its full path"
    return f"{path!r}: {refused.message}"


def task_of(claimed: ClaimedJob, pool: str, variables: Mapping[str, str]) -> CommandTask:
    """Return what to run, with `variables` for `fromEnv`.

    ValueError if the spec cannot be read, MissingVariableError if a variable is not given.
    """
    spec = claimed.spec.command
    return CommandTask(
        claim=claimed.claim,
        command=spec.argv or spec.command or "",
        environment={**_own_variables(spec, variables), **_attempt_variables(claimed, pool)},
        output_limit_bytes=spec.output_limit_bytes,
        stream_limit_bytes=spec.output_stream_bytes,
        shell=spec.shell_argv,
        inputs=claimed.inputs,
        workdir=spec.workdir,
        timeout=spec.timeout,
        outlives_lease=spec.on_lease_lost is OnLeaseLost.CONTINUE,
    )


def report_of(claimed: ClaimedJob, ended: CommandEnd, rng: Rng) -> AttemptReport:
    """Report how a command ended, and whether the job is retried."""
    delay = None
    if ended.reason is not None and not ended.is_killed:
        delay = retry_policy.decide(
            claimed.spec.command,
            failures=claimed.failures,
            exit_code=ended.exit_code,
            reason=ended.reason,
            rng=rng,
        )
    end_outcome = Outcome.FAILED if ended.is_killed or ended.reason else Outcome.SUCCEEDED
    return AttemptReport(
        job=claimed.job,
        claim=claimed.claim,
        fence=claimed.fence,
        outcome=end_outcome if delay is None else Outcome.RETRY,
        reason=Reason.SIGNAL if ended.is_killed else ended.reason,
        message=ended.message,
        exit_code=ended.exit_code,
        delay_seconds=delay.total_seconds() if delay else 0.0,
        result=ended.result,
        output=ended.output,
    )


def refuse_claim(claimed: ClaimedJob, reason: Reason, message: str) -> AttemptReport:
    """Report a claim that cannot be run."""
    return AttemptReport(claimed.job, *claimed.ref, Outcome.FAILED, reason, message)


def _own_variables(spec: Command, variables: Mapping[str, str]) -> dict[str, str]:
    values = {}
    for variable in spec.env:
        name = variable.from_env
        if name is not None and name not in variables:
            raise MissingVariableError(
                f"the variable {name} (env[].fromEnv) has no value in this worker: only the"
                " `workron run` that submitted the job has it; repeat that command, and let no"
                " other worker take jobs of this pool from the store"
            )
        values[variable.name] = variable.value if name is None else variables[name]
    return values


def _attempt_variables(claimed: ClaimedJob, pool: str) -> dict[str, str]:
    variables = {
        "WORKRON_NAMESPACE": claimed.namespace,
        "WORKRON_RUN": claimed.run,
        "WORKRON_TASK": claimed.name,
        "WORKRON_POOL": pool,
        "WORKRON_JOB_ID": str(claimed.job),
        "WORKRON_ATTEMPT": str(claimed.attempt),
        "WORKRON_MAX_ATTEMPTS": str(claimed.spec.command.max_attempts),
        **({} if claimed.run_state is None else {"WORKRON_RUN_STATE": str(claimed.run_state)}),
        "WORKRON_FENCE": str(claimed.fence),
    }
    if claimed.index is not None:
        variables["WORKRON_INDEX"] = str(claimed.index)
    if claimed.item is not None:
        # As a manifest would have it: `true`, `1.5`, and a string without quotes.
        item = claimed.item
        variables["WORKRON_ITEM"] = item if isinstance(item, str) else json.dumps(item)
    return variables

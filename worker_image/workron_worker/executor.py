"""The port behind which commands are run: what the agent hands over, and what it gets back.

Called by `attempts` and `stream`; `runner_executor` fills it with a process beside this one.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from workron.core.ids import ClaimId
    from workron.core.states import Reason


Done = Callable[[int], None]
"""Says, on the loop of `run`, that so many bytes more have been dealt with."""

OnOutput = Callable[[bytes, Done], None]
"""Is given every byte as it comes, on the loop of `run`, which it must not hold up."""

WINDOW_BYTES: Final = 256 * 1024
"""So much output of one command may wait to be dealt with; then the command waits in its pipe."""


class CommandTask(msgspec.Struct, frozen=True):
    """One attempt, as an executor needs it."""

    claim: ClaimId
    command: str | Sequence[str]
    """A string goes to `sh -c` as it is written; a sequence is started without a shell."""
    environment: Mapping[str, str]
    """The job's own variables and those that name the attempt; the executor adds the rest."""
    output_bytes: int
    """How much of the output is kept, head and tail together."""
    stream_bytes: int = 0
    """How much of it the agent stores while it runs; nothing to an executor."""
    inputs: Mapping[str, Any] | None = None
    workdir: str | None = None
    timeout: timedelta | None = None
    outlives_lease: bool = False
    """Whether it may run on where an executor ends by itself what its agent has left alone."""


class CommandEnd(msgspec.Struct, frozen=True):
    """How an attempt ended; `reason` is None when its command ended with exit code 0."""

    reason: Reason | None = None
    message: str | None = None
    exit_code: int | None = None
    """Of the command; 128 and the signal's number when a signal ended it, as shells have it."""
    output: bytes = b""
    result: Any = None
    is_killed: bool = False
    """Whether `kill` ended it; then the other fields say nothing about the command."""
    is_overdue: bool = False
    """Whether the executor did so by itself, at the moment of `hold_until`."""
    start_seconds: float | None = None
    """From the order until the command was started; None: it was not, or nobody measured it."""


class StartError(errors.WorkronError):
    """This machine cannot start commands at present, whatever they are."""


class RunnerLostError(errors.WorkronError):
    """What ran the command is gone, and the command with it; whose fault that is nobody knows."""

    def __init__(self, why: str, *, is_alone: bool) -> None:
        super().__init__(f"the runner was lost: {why}")
        self.is_alone = is_alone
        """Whether nothing else fell with it."""


OnEnd = Callable[[CommandEnd | Exception], None]
"""Is told once how an attempt ended, or by which error; never from within `start`, and it raises
nothing itself."""


class Executor(Protocol):
    """Runs commands; knows nothing of stores, claims that move, or retries."""

    @property
    def is_ready(self) -> bool:
        """Whether what is started now would run; else nothing should be claimed for it."""

    async def keep(self, tell: Callable[[], object]) -> None:
        """See to it that it is ready, and tell each time that it has become so.

        May return when there is nothing to see to; StartError if it will not be ready any more.
        """

    def start(self, task: CommandTask, on_end: OnEnd, on_output: OnOutput | None = None) -> None:
        """Run one attempt; what it leaves behind is dead before `on_end` is told, or by `close`.

        Without `on_output` nobody hears the output, and it never waits. What is not dealt with at
        the end of the command does not hold up its end. A StartError is no fault of the job; a
        RunnerLostError may be, or not; what `on_output` raises ends the attempt as it is.
        """

    def kill(self, claim: ClaimId) -> None:
        """End an attempt: TERM, and after a grace KILL. Its end is told when it is dead."""

    def hold_until(self, at: float) -> None:
        """Let what runs live until that moment of CLOCK_BOOTTIME, unless this is called again.

        Nothing starts after it, either. A task that `outlives_lease` is spared.
        """

    def close(self) -> None:
        """Give everything back; nothing runs any more."""


async def carry_out(
    executor: Executor, task: CommandTask, on_output: OnOutput | None = None
) -> CommandEnd:
    """Run one attempt and wait for its end; whoever waits no longer ends it first."""
    end: asyncio.Future[CommandEnd] = asyncio.get_running_loop().create_future()
    executor.start(task, functools.partial(_settle, end), on_output)
    try:
        return await asyncio.shield(end)
    except asyncio.CancelledError:
        # Given up, which is no fault of its own: it ends as softly as one that is killed.
        executor.kill(task.claim)
        await asyncio.gather(end, return_exceptions=True)
        raise


def _settle(end: asyncio.Future[CommandEnd], outcome: CommandEnd | Exception) -> None:
    if end.done():
        return
    if isinstance(outcome, Exception):
        end.set_exception(outcome)
    else:
        end.set_result(outcome)

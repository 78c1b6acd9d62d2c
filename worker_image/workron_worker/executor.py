"""The port behind which commands are run: what the agent hands over, and what it gets back.

Called by `loop`; `local_executor` fills it with threads of this process, `runner_executor` with a
process beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from workron.core.ids import ClaimId
    from workron.core.states import Reason


@dataclass(frozen=True, slots=True)
class Task:
    """One attempt, as an executor needs it."""

    claim: ClaimId
    command: str | Sequence[str]
    """A string goes to `sh -c` as it is written; a sequence is started without a shell."""
    environment: Mapping[str, str]
    """The job's own variables and those that name the attempt; the executor adds the rest."""
    output_bytes: int
    """How much of the output is kept, head and tail together."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    workdir: str | None = None
    timeout: timedelta | None = None
    outlives_lease: bool = False
    """Whether it may run on where an executor ends by itself what its agent has left alone."""


@dataclass(frozen=True, slots=True)
class Ended:
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


class StartError(errors.WorkronError):
    """This machine cannot start commands at present, whatever they are."""


class RunnerLostError(errors.WorkronError):
    """What ran the command is gone, and the command with it; whose fault that is nobody knows."""

    def __init__(self, why: str, *, is_alone: bool) -> None:
        super().__init__(f"the runner was lost: {why}")
        self.is_alone = is_alone
        """Whether nothing else fell with it."""


class Executor(Protocol):
    """Runs commands; knows nothing of stores, claims that move, or retries."""

    async def run(self, task: Task, on_output: Callable[[bytes], None]) -> Ended:
        """Run one attempt to its end; what it leaves behind is dead by then, or by `close`.

        `on_output` is given every byte as it comes, from whichever thread reads it. StartError is
        no fault of the job; RunnerLostError may be, or not.
        """

    def kill(self, claim: ClaimId) -> None:
        """End an attempt: TERM, and after a grace KILL. `run` returns when it is dead."""

    def hold_until(self, at: float) -> None:
        """Let what runs live until that moment of CLOCK_BOOTTIME, unless this is called again.

        Nothing starts after it, either. A task that `outlives_lease` is spared.
        """

    def close(self) -> None:
        """Give everything back; nothing runs any more."""

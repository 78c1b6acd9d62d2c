"""The tasks of the executor (`runner_client.RunnerExecutor`), how they end, and its errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from workron.core import errors
from workron.core.ids import ClaimId
from workron.core.states import Reason

Acknowledge = Callable[[int], None]
"""Says, on the agent's event loop, that this many more bytes were processed."""

OnOutput = Callable[[bytes, Acknowledge], None]
"""Receives every byte as it comes, on the agent's event loop, which it must not block."""

WINDOW_BYTES: Final = 256 * 1024
"""Output of one command that may be unacknowledged; beyond it the command blocks on its pipe."""


class CommandTask(msgspec.Struct, frozen=True):
    """The command of one attempt."""

    claim: ClaimId
    command: str | Sequence[str]
    """A string is passed to the shell; a sequence is executed without one."""
    environment: Mapping[str, str]
    """The job's own variables and those of the attempt; the executor adds the rest."""
    output_limit_bytes: int
    """How much of the output is captured, head and tail together."""
    stream_limit_bytes: int = 0
    """How much of it the agent stores while it runs; the executor ignores it."""
    shell: Sequence[str] = ("sh", "-c")
    inputs: Mapping[str, Any] | None = None
    workdir: str | None = None
    timeout: timedelta | None = None
    outlives_lease: bool = False
    """Whether `set_deadline` spares it."""


class CommandEnd(msgspec.Struct, frozen=True):
    """How an attempt ended; `reason` is None when its command ended with exit code 0."""

    reason: Reason | None = None
    message: str | None = None
    exit_code: int | None = None
    """Exit code; 128 plus the signal's number when a signal ended the command, as in shells."""
    output: bytes = b""
    result: Any = None
    is_killed: bool = False
    """Whether `kill` ended it; then the other fields say nothing about the command."""
    is_past_deadline: bool = False
    """Whether the executor itself did so, at the time of `set_deadline`."""
    start_seconds: float | None = None
    """From the request until the command was started; None: it was not, or not measured."""


class StartError(errors.WorkronError):
    """This machine cannot start commands at present; no job is at fault."""


class RunnerLostError(errors.WorkronError):
    """The runner was lost, and the command with it; the cause is unknown."""

    def __init__(self, why: str, *, is_alone: bool) -> None:
        super().__init__(f"the runner was lost: {why}")
        self.is_alone = is_alone
        """Whether it ran no other command."""


OnEnd = Callable[[CommandEnd | Exception], None]
"""Called once with the end of an attempt or its error, but not by `start`; must not raise."""

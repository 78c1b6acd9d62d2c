"""Whether a failed command is retried, and after which delay.

The delay is random, evenly from the upper half of

    min(max, initial * factor ** failures)

where `failures` counts the failures before this one: by default up to 1 s, 2 s, 4 s and so on, at
most 5 min. A lost or released claim is not a failure and does not lengthen the delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from workron.core.states import Reason

if TYPE_CHECKING:
    from workron.core.clock import Rng
    from workron.core.jobspec import BackoffPolicy, Command


_NEVER_RETRIED: Final = frozenset(
    {
        Reason.COMMAND_NOT_FOUND,
        Reason.INPUTS_TOO_LARGE,
        Reason.RESULT_REFUSED,
        Reason.DEADLINE_EXCEEDED,
    }
)
"""A retry would end in the same way."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the command is retried, and after which delay."""

    is_retry: bool
    delay: timedelta = timedelta(0)


_NO_RETRY: Final = Decision(is_retry=False)


def decide(
    command: Command, *, failures: int, exit_code: int | None, reason: Reason | None, rng: Rng
) -> Decision:
    """Decide on a failure of a command that had failed `failures` times before.

    After a timeout the exit code comes from the signal that stopped the command, not from the
    command, so it matches neither `retryOn` nor `failOn`.
    """
    code = None if reason is Reason.TIMEOUT else exit_code
    is_retryable = code not in command.fail_on and (
        not command.retry_on or code in command.retry_on
    )
    if reason in _NEVER_RETRIED or not is_retryable or failures + 1 >= command.max_attempts:
        return _NO_RETRY
    return Decision(is_retry=True, delay=_max_delay(command.backoff, failures) * _jitter(rng))


def _max_delay(backoff: BackoffPolicy, failures: int) -> timedelta:
    try:
        return min(backoff.max, backoff.initial * backoff.factor**failures)
    except OverflowError:
        return backoff.max


def _jitter(rng: Rng) -> float:
    return (1 + rng.random()) / 2

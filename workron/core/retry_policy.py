"""Whether a failed command is retried, and after which delay.

The delay is random, evenly from the upper half of

    min(max, initial * factor ** failures)

where `failures` counts the failures before this one: by default up to 1 s, 2 s, 4 s and so on, at
most 5 min. A lost or released claim is not a failure and does not lengthen the delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workron.core.states import Reason

if TYPE_CHECKING:
    from datetime import timedelta

    from workron.core.clock import Rng
    from workron.core.jobspec import Command


_NEVER_RETRIED: Final = {
    Reason.COMMAND_NOT_FOUND,
    Reason.INPUTS_TOO_LARGE,
    Reason.RESULT_REFUSED,
    Reason.DEADLINE_EXCEEDED,
}
"""A retry would end in the same way."""


def decide(
    command: Command, *, failures: int, exit_code: int | None, reason: Reason | None, rng: Rng
) -> timedelta | None:
    """Return the delay before the retry of a command that had failed `failures` times before.

    None if it is not retried. After a timeout the exit code comes from the signal that stopped the
    command, not from the command, so it matches neither `retryOn` nor `failOn`.
    """
    code = None if reason is Reason.TIMEOUT else exit_code
    is_retryable = code not in command.fail_on and (
        not command.retry_on or code in command.retry_on
    )
    if reason in _NEVER_RETRIED or not is_retryable or failures + 1 >= command.max_attempts:
        return None
    backoff = command.backoff
    try:
        longest = min(backoff.max, backoff.initial * backoff.factor**failures)
    except OverflowError:
        longest = backoff.max
    return longest * ((1 + rng.random()) / 2)

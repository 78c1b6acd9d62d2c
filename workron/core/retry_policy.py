"""What follows when a command has failed: another try after a wait, or the end.

Called by the worker. The wait before the next try is
drawn evenly from the upper half of

    min(max, initial * factor ** failures)

where `failures` are those before this one: by default from the half to the whole of 1 s, 2 s, 4 s
and so on up to 5 min. A lost or released claim is no failure and does not lengthen the wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from workron.core.states import Reason

if TYPE_CHECKING:
    from workron.core.clock import Rng
    from workron.core.jobspec import BackoffPolicy, Command


_HOPELESS: Final = frozenset(
    {
        Reason.COMMAND_NOT_FOUND,
        Reason.INPUTS_TOO_LARGE,
        Reason.RESULT_REFUSED,
        Reason.DEADLINE_EXCEEDED,
    }
)
"""Nothing about these would be different the next time."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether there is another try, and if so how long to wait for it."""

    is_retry: bool
    delay: timedelta = timedelta(0)


_END: Final = Decision(is_retry=False)


def decide(
    command: Command, *, failures: int, exit_code: int | None, reason: Reason | None, rng: Rng
) -> Decision:
    """Judge one more failure of a command that had failed `failures` times before.

    An attempt that ran out of time was ended from outside: the exit code that this left is not
    the command's word, so it counts as one that is in no list.
    """
    code = None if reason is Reason.TIMEOUT else exit_code
    is_wanted = code not in command.fail_on and (not command.retry_on or code in command.retry_on)
    if reason in _HOPELESS or not is_wanted or failures + 1 >= command.max_attempts:
        return _END
    return Decision(is_retry=True, delay=_longest(command.backoff, failures) * _jitter(rng))


def _longest(backoff: BackoffPolicy, failures: int) -> timedelta:
    try:
        return min(backoff.max, backoff.initial * backoff.factor**failures)
    except OverflowError:
        return backoff.max


def _jitter(rng: Rng) -> float:
    return (1 + rng.random()) / 2

"""The effect of an upstream's end on a downstream job: it runs, or it is skipped and why.

A job is evaluated when its last upstream has ended, and by the most severe verdict of all of them.
So the outcome of a DAG does not depend on the order in which its jobs end. Groups (workflows and
arrays) are evaluated by their jobs in the same way.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final

from workron.core.states import TERMINAL_STATES, Reason, State

if TYPE_CHECKING:
    from collections.abc import Mapping


class Verdict(IntEnum):
    """Ordered by severity; the most severe one decides."""

    GO = 0
    NOT_NEEDED = 1
    UPSTREAM_CANCELLED = 2
    UPSTREAM_FAILED = 3
    CANCELLED = 4
    FAILED = 5


class Condition(StrEnum):
    """How an end is evaluated: the `when` of an edge, or the part of a job in its group."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    FINISHED = "Finished"
    MEMBER = "Member"
    """The job is an element of an array."""
    TASK = "Task"
    """The job is a task of a workflow."""
    ALLOWED_TASK = "AllowedTask"
    """A task whose failure is allowed, by `allowFailure`."""


_MEMBER: Final = {
    State.SUCCEEDED: Verdict.GO,
    State.FAILED: Verdict.FAILED,
    State.CANCELLED: Verdict.CANCELLED,
}
_TASK: Final = _MEMBER | {State.SKIPPED: Verdict.GO}
_VERDICTS: Final[Mapping[Condition, Mapping[State, Verdict]]] = {
    Condition.SUCCEEDED: {
        State.SUCCEEDED: Verdict.GO,
        State.FAILED: Verdict.UPSTREAM_FAILED,
        State.CANCELLED: Verdict.UPSTREAM_CANCELLED,
    },
    Condition.FAILED: {
        State.SUCCEEDED: Verdict.NOT_NEEDED,
        State.FAILED: Verdict.GO,
        State.CANCELLED: Verdict.NOT_NEEDED,
    },
    Condition.FINISHED: dict.fromkeys(TERMINAL_STATES, Verdict.GO),
    Condition.MEMBER: _MEMBER,
    Condition.TASK: _TASK,
    Condition.ALLOWED_TASK: _TASK | {State.FAILED: Verdict.GO},
}


def evaluate(condition: Condition, state: State, reason: Reason | None) -> Verdict:
    """Return the verdict on one end; a skipped job passes on its own reason."""
    verdict = _VERDICTS[condition].get(state)
    if verdict is not None:
        return verdict
    return next(skip for skip, end in END_STATES.items() if end == (State.SKIPPED, reason))


END_STATES: Final[Mapping[Verdict, tuple[State, Reason | None]]] = {
    Verdict.GO: (State.SUCCEEDED, None),
    Verdict.NOT_NEEDED: (State.SKIPPED, Reason.NOT_NEEDED),
    Verdict.UPSTREAM_CANCELLED: (State.SKIPPED, Reason.UPSTREAM_CANCELLED),
    Verdict.UPSTREAM_FAILED: (State.SKIPPED, Reason.UPSTREAM_FAILED),
    Verdict.CANCELLED: (State.CANCELLED, None),
    Verdict.FAILED: (State.FAILED, Reason.MEMBER_FAILED),
}
"""How a group ends by its most severe verdict; a command with GO is queued instead."""

"""What the end of one job means for another: may it go, is it skipped, and why.

A job is decided when the last of its upstreams has ended, and by the gravest verdict among them,
so that the outcome of a DAG does not depend on the order in which its jobs happen to end. A
workflow and an array are decided by their members in the same way.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from workron.core.states import Reason, State

if TYPE_CHECKING:
    from collections.abc import Mapping


class Verdict(IntEnum):
    """From harmless to grave; the gravest wins."""

    GO = 0
    NOT_NEEDED = 1
    UPSTREAM_CANCELLED = 2
    UPSTREAM_FAILED = 3
    CANCELLED = 4
    FAILED = 5


class Condition(StrEnum):
    """What is asked of an end: `when` of an edge, or how a member bears on its whole."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    FINISHED = "Finished"
    MEMBER = "Member"
    """An element of an array bears on the array."""
    TASK = "Task"
    """A task bears on its workflow."""
    HANDLED_TASK = "HandledTask"
    """The same, but a `Failed` or `Finished` edge takes care of its failure."""


_SKIPS: Final = MappingProxyType(
    {
        Reason.NOT_NEEDED: Verdict.NOT_NEEDED,
        Reason.UPSTREAM_CANCELLED: Verdict.UPSTREAM_CANCELLED,
        Reason.UPSTREAM_FAILED: Verdict.UPSTREAM_FAILED,
    }
)

_VERDICTS: Final[Mapping[Condition, Mapping[State, Verdict]]] = MappingProxyType(
    {
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
        Condition.MEMBER: {
            State.SUCCEEDED: Verdict.GO,
            State.FAILED: Verdict.FAILED,
            State.CANCELLED: Verdict.CANCELLED,
        },
        Condition.TASK: {
            State.SUCCEEDED: Verdict.GO,
            State.FAILED: Verdict.FAILED,
            State.CANCELLED: Verdict.CANCELLED,
            State.SKIPPED: Verdict.GO,
        },
        Condition.HANDLED_TASK: {
            State.SUCCEEDED: Verdict.GO,
            State.FAILED: Verdict.GO,
            State.CANCELLED: Verdict.CANCELLED,
            State.SKIPPED: Verdict.GO,
        },
    }
)


def evaluate(condition: Condition, state: State, reason: Reason | None) -> Verdict:
    """Judge one end under one condition; a skipped job passes its own reason on."""
    if condition is Condition.FINISHED:
        return Verdict.GO
    verdict = _VERDICTS[condition].get(state)
    if verdict is not None:
        return verdict
    assert reason is not None, "a skipped job has a reason"
    return _SKIPS[reason]


END_STATES: Final[Mapping[Verdict, tuple[State, Reason | None]]] = MappingProxyType(
    {
        Verdict.GO: (State.SUCCEEDED, None),
        Verdict.NOT_NEEDED: (State.SKIPPED, Reason.NOT_NEEDED),
        Verdict.UPSTREAM_CANCELLED: (State.SKIPPED, Reason.UPSTREAM_CANCELLED),
        Verdict.UPSTREAM_FAILED: (State.SKIPPED, Reason.UPSTREAM_FAILED),
        Verdict.CANCELLED: (State.CANCELLED, None),
        Verdict.FAILED: (State.FAILED, Reason.MEMBER_FAILED),
    }
)
"""How a workflow or an array ends by the gravest verdict; a command with GO is queued instead."""

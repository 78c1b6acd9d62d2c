"""The states of a job and the only ways between them; the one place that says so.

Each SQL verb names its transitions in its header, and a test holds them against `TABLE`; the
diagram in the documentation is drawn from it too.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping


class State(StrEnum):
    """Where a job stands; the same words in SQL, in a status and in a metric."""

    WAITING = "Waiting"
    """Something must happen first; the reason says what."""
    QUEUED = "Queued"
    """A worker may claim it now."""
    RUNNING = "Running"
    """One claim of it is current."""
    SUCCEEDED = "Succeeded"
    """Its command ended with exit code 0, or all its members ended well."""
    FAILED = "Failed"
    """It ended badly and will not be tried again."""
    CANCELLED = "Cancelled"
    """Somebody asked for its end."""
    SKIPPED = "Skipped"
    """Its upstreams ended in a way that leaves nothing to do."""


TERMINAL_STATES: Final = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SKIPPED})


class Reason(StrEnum):
    """Why a job is in its state, where the state alone does not say."""

    UPSTREAM = "Upstream"
    BACKOFF = "Backoff"
    SCHEDULED = "Scheduled"
    SUSPENDED = "Suspended"
    AWAITING_PROOF = "AwaitingProof"
    EXIT_CODE = "ExitCode"
    SIGNAL = "Signal"
    TIMEOUT = "Timeout"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    WORKER_LOST = "WorkerLost"
    COMMAND_NOT_FOUND = "CommandNotFound"
    OUT_OF_MEMORY = "OutOfMemory"
    INPUTS_TOO_LARGE = "InputsTooLarge"
    RESULT_REFUSED = "ResultRefused"
    MEMBER_FAILED = "MemberFailed"
    UPSTREAM_FAILED = "UpstreamFailed"
    UPSTREAM_CANCELLED = "UpstreamCancelled"
    NOT_NEEDED = "NotNeeded"


REASONS: Final[Mapping[State, frozenset[Reason]]] = MappingProxyType(
    {
        State.WAITING: frozenset(
            {
                Reason.UPSTREAM,
                Reason.BACKOFF,
                Reason.SCHEDULED,
                Reason.SUSPENDED,
                Reason.AWAITING_PROOF,
            }
        ),
        State.FAILED: frozenset(
            {
                Reason.EXIT_CODE,
                Reason.SIGNAL,
                Reason.TIMEOUT,
                Reason.DEADLINE_EXCEEDED,
                Reason.WORKER_LOST,
                Reason.COMMAND_NOT_FOUND,
                Reason.OUT_OF_MEMORY,
                Reason.INPUTS_TOO_LARGE,
                Reason.RESULT_REFUSED,
                Reason.MEMBER_FAILED,
            }
        ),
        State.SKIPPED: frozenset(
            {Reason.UPSTREAM_FAILED, Reason.UPSTREAM_CANCELLED, Reason.NOT_NEEDED}
        ),
    }
)
"""Which reasons a state may have; a state that is missing here has none."""


class Event(StrEnum):
    """What can happen to a job."""

    READY = "ready"
    """Nothing is left to wait for."""
    HOLD = "hold"
    """It was suspended, or its worker's death is not proven."""
    CLAIM = "claim"
    """A worker took it and runs an attempt."""
    RETRY = "retry"
    """Its command failed and has another try after a backoff."""
    RELEASE = "release"
    """Its worker handed it back; nothing is counted."""
    REAP = "reap"
    """Its worker vanished."""
    SUCCEED = "succeed"
    """Its command ended with exit code 0, or its last member ended and all is well."""
    FAIL = "fail"
    """Its command failed and has no other try, or its last member ended and one had failed."""
    SKIP = "skip"
    """Its last upstream ended, and together they leave it nothing to do."""
    CANCEL = "cancel"
    """Somebody asked for its end."""
    EXPIRE = "expire"
    """The deadline of the whole job has passed."""


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = MappingProxyType(
    {
        (State.WAITING, Event.READY): State.QUEUED,
        (State.WAITING, Event.SKIP): State.SKIPPED,
        (State.WAITING, Event.CANCEL): State.CANCELLED,
        (State.WAITING, Event.EXPIRE): State.FAILED,
        # A workflow and an array run no command: they end when their last member has.
        (State.WAITING, Event.SUCCEED): State.SUCCEEDED,
        (State.WAITING, Event.FAIL): State.FAILED,
        (State.QUEUED, Event.CLAIM): State.RUNNING,
        (State.QUEUED, Event.HOLD): State.WAITING,
        (State.QUEUED, Event.CANCEL): State.CANCELLED,
        (State.QUEUED, Event.EXPIRE): State.FAILED,
        (State.RUNNING, Event.SUCCEED): State.SUCCEEDED,
        (State.RUNNING, Event.FAIL): State.FAILED,
        (State.RUNNING, Event.RETRY): State.WAITING,
        (State.RUNNING, Event.HOLD): State.WAITING,
        (State.RUNNING, Event.RELEASE): State.QUEUED,
        (State.RUNNING, Event.REAP): State.QUEUED,
        (State.RUNNING, Event.CANCEL): State.CANCELLED,
        (State.RUNNING, Event.EXPIRE): State.FAILED,
    }
)


def advance(state: State, event: Event) -> State:
    """Answer the state after `event`, or raise StateError where the table has none."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        possible = (
            ", ".join(sorted(e for s, e in TRANSITIONS if s is state)) or "nothing: it has ended"
        )
        message = f"a job that is {state} cannot take '{event}'; it can take {possible}"
        raise errors.StateError(message) from None

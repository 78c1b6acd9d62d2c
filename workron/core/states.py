"""The states of a job, the reasons for each state, and the transitions between states.

`TRANSITIONS` is the only definition. Every SQL function names its transitions in its header, a test
compares them with this table, and the diagram in the documentation is drawn from it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet


class State(StrEnum):
    """The state of a job; the same words in SQL, in a status and in a metric."""

    WAITING = "Waiting"
    """It cannot start yet; the reason says why."""
    QUEUED = "Queued"
    """A worker can claim it now."""
    RUNNING = "Running"
    """A worker has claimed it and runs an attempt."""
    SUCCEEDED = "Succeeded"
    """Its command ended with exit code 0, or its group ended with no more failures than allowed."""
    FAILED = "Failed"
    """It failed and will not be retried."""
    CANCELLED = "Cancelled"
    """It was cancelled: by a user, by the deadline of its workflow, or by `failFast`."""
    SKIPPED = "Skipped"
    """It does not run, because of how its upstreams ended."""


TERMINAL_STATES: Final = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SKIPPED})


class Reason(StrEnum):
    """Why a job is in its state, if the state alone does not say."""

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


REASONS: Final[Mapping[State, AbstractSet[Reason]]] = {
    State.WAITING: {
        Reason.UPSTREAM,
        Reason.BACKOFF,
        Reason.SCHEDULED,
        Reason.SUSPENDED,
        Reason.AWAITING_PROOF,
    },
    State.FAILED: {
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
    },
    State.SKIPPED: {Reason.UPSTREAM_FAILED, Reason.UPSTREAM_CANCELLED, Reason.NOT_NEEDED},
}
"""The reasons that each state can have; a state that is not listed has none."""


class Event(StrEnum):
    """An event in the life of a job, which moves it to another state."""

    READY = "ready"
    """It no longer waits for anything."""
    SUSPEND = "suspend"
    """It was suspended, or waits for proof that its worker is dead."""
    CLAIM = "claim"
    """A worker claimed it and runs an attempt."""
    RETRY = "retry"
    """Its command failed and is retried after a backoff."""
    RELEASE = "release"
    """Its worker released it; this counts neither as a failure nor as a loss."""
    REAP = "reap"
    """Its worker was lost."""
    SUCCEED = "succeed"
    """Its command ended with exit code 0, or its group ended with no more failures than allowed."""
    FAIL = "fail"
    """Its command failed for the last time, or its group ended with more failures than allowed."""
    SKIP = "skip"
    """Its last upstream ended, and the ends of its upstreams rule out running it."""
    CANCEL = "cancel"
    """It was cancelled: by a user, by the deadline of its workflow, or by `failFast`."""
    EXPIRE = "expire"
    """Its deadline has passed."""


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = {
    (State.WAITING, Event.READY): State.QUEUED,
    (State.WAITING, Event.SKIP): State.SKIPPED,
    (State.WAITING, Event.CANCEL): State.CANCELLED,
    (State.WAITING, Event.EXPIRE): State.FAILED,
    # Groups (workflows and arrays) run no command: they end when their last job has ended.
    (State.WAITING, Event.SUCCEED): State.SUCCEEDED,
    (State.WAITING, Event.FAIL): State.FAILED,
    (State.QUEUED, Event.CLAIM): State.RUNNING,
    (State.QUEUED, Event.SUSPEND): State.WAITING,
    (State.QUEUED, Event.CANCEL): State.CANCELLED,
    (State.QUEUED, Event.EXPIRE): State.FAILED,
    (State.RUNNING, Event.SUCCEED): State.SUCCEEDED,
    (State.RUNNING, Event.FAIL): State.FAILED,
    (State.RUNNING, Event.RETRY): State.WAITING,
    (State.RUNNING, Event.SUSPEND): State.WAITING,
    (State.RUNNING, Event.RELEASE): State.QUEUED,
    (State.RUNNING, Event.REAP): State.QUEUED,
    (State.RUNNING, Event.CANCEL): State.CANCELLED,
    (State.RUNNING, Event.EXPIRE): State.FAILED,
}

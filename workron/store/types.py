"""What is asked of a store, and what it answers to that: frozen, the same in every dialect.

Said here for `protocol`, through which every caller takes them. Of what there is one for each
attempt, msgspec makes it: in a tenth of the time that a frozen dataclass takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from workron.core.ids import ClaimId, Fence, JobId, SessionKey, WorkerId
    from workron.core.jobspec import Spec
    from workron.core.plan import Kind
    from workron.core.states import Reason, State


class Signal(StrEnum):
    """What somebody asked of a running job; every verb that ends its claim obeys."""

    CANCEL = "Cancel"
    EXPIRE = "Expire"
    HOLD = "Hold"


class ReportResult(StrEnum):
    """What became of a report on a claim."""

    ACCEPTED = "accepted"
    ALREADY = "already"
    """An earlier call with the same claim was accepted; this one changed nothing."""
    STALE = "stale"
    """The claim was taken back; nothing of it was stored."""


class LossKind(StrEnum):
    """How a claim was lost with what ran it, which decides what that costs its job."""

    ALONE = "Alone"
    """Nothing else ran there: it is charged a loss."""
    TOGETHER = "Together"
    """It fell with others: no loss, but each is tried alone next."""


class Outcome(StrEnum):
    """How an attempt ended, as the worker judged it by the job's retry rules."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    RETRY = "Retry"


@dataclass(frozen=True, slots=True)
class Registration:
    """Who asks to work. `boot` is new with every process, so a reused name is seen through."""

    token: str
    name: str
    boot: UUID
    slots: int


@dataclass(frozen=True, slots=True)
class Session:
    """A worker's row, the secret key that its other verbs need, and the pool it was admitted to."""

    worker: WorkerId
    key: SessionKey
    lease_seconds: float
    namespace: str
    pool: str


class ClaimRef(NamedTuple):
    """A claim as a report names it: its id says *this one*, its fence *newer*.

    The id alone is not enough: a late copy of a claim call may take a job under an id that is over.
    """

    claim: ClaimId
    fence: Fence


class ClaimedJob(msgspec.Struct, frozen=True):
    """One claim: everything that a worker needs to run one attempt."""

    job: JobId
    claim: ClaimId
    attempt: int
    failures: int
    losses: int
    fence: Fence
    namespace: str
    run: str
    """Name of the Job or Workflow that it belongs to."""
    name: str
    index: int | None
    spec: Spec
    item: Any = None
    """The array's item at `index`, if it has items."""
    inputs: Mapping[str, Any] | None = None
    """Results of its upstreams by name; an array's is a list by index. None: it has none."""
    inputs_too_large: bool = False

    @property
    def ref(self) -> ClaimRef:
        """What a report on it names."""
        return ClaimRef(self.claim, self.fence)


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A claim that the store counts as this worker's."""

    job: JobId
    claim: ClaimId
    fence: Fence
    signal: Signal | None

    @property
    def ref(self) -> ClaimRef:
        """What a report on it names."""
        return ClaimRef(self.claim, self.fence)


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The answer to a beat. What a worker runs and `held` lacks, it must kill."""

    held: Sequence[HeldClaim]
    is_draining: bool
    database: str
    """Identity of the database: another one means another history."""


class AttemptReport(msgspec.Struct, frozen=True):
    """A worker's report on one claim."""

    job: JobId
    claim: ClaimId
    fence: Fence
    outcome: Outcome
    reason: Reason | None = None
    message: str | None = None
    exit_code: int | None = None
    delay_seconds: float = 0.0
    """With RETRY: how long to wait."""
    result: Any = None
    """What the job wrote as its result, any JSON value; None: nothing."""
    output: bytes = b""
    """What is kept of it; of an attempt that was streamed, what follows the pieces that it has."""


@dataclass(frozen=True, slots=True)
class CompleteReply:
    """Answers in the order of the ends, and the new claims."""

    answers: Sequence[ReportResult]
    claimed: Sequence[ClaimedJob] = ()


@dataclass(frozen=True, slots=True)
class SubmittedRun:
    """A run that is in the store now; `is_new` is False when it already was."""

    run: JobId
    is_new: bool
    is_suspended: bool


@dataclass(frozen=True, slots=True)
class RunUpdate:
    """What an object of a cluster says now of what may be edited in it."""

    generation: int
    """The edition that says so; a store that has heard a newer one does nothing."""
    is_cancelled: bool
    is_suspended: bool
    priority: int


@dataclass(frozen=True, slots=True)
class PoolGrant:
    """By what workers may enter a pool; whoever asks keeps it, and may ask for the same again."""

    namespace: str
    pool: str
    token: str
    lease_seconds: float
    """For workers that register from now on."""
    password: str | None
    """Of a database role that only this pool's workers have; None: they have the asker's own."""
    connections: int
    """No more of them at a time for that role."""


@dataclass(frozen=True, slots=True)
class PoolLogin:
    """What the database made of it."""

    url: str
    """What workers of the pool open it by."""
    connections: int | None
    """How many there may be to the server, of all who come; None: it counts none."""


class HeartbeatVersion(NamedTuple):
    """What one look sees of a worker's life: while it stays the same, nothing proves life.

    Which run of the server told it belongs to it: a server that lost its last commits may show a
    count that was seen before.
    """

    server: str
    heartbeats: int


@dataclass(frozen=True, slots=True)
class WorkerHeartbeat:
    """A worker as the maintainer sees it at one look."""

    worker: WorkerId
    version: HeartbeatVersion
    lease_seconds: float
    name: str
    boot: UUID


@dataclass(frozen=True, slots=True)
class ReapResult:
    """What a reap did: nothing (`was_reaped` False) if the worker had beaten meanwhile.

    Jobs that a mark has ended as Cancelled are in neither list.
    """

    was_reaped: bool
    requeued: Sequence[JobId] = ()
    failed: Sequence[JobId] = ()


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What one look at waiting jobs has found."""

    missed: int
    """How many wait though all their upstreams have ended; it must be 0."""
    last: int
    """Where to go on; 0: there were no more, so from the beginning."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as it was submitted."""

    run: JobId
    last_job: JobId
    namespace: str
    kind: Kind
    name: str
    uid: UUID
    digest: str
    submitted_at: datetime
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it stands, whichever table it is in.

    A group shows the state Running while any of its members has run and not all have ended.
    """

    job: JobId
    run: JobId
    kind: Kind
    name: str
    index: int | None
    group_id: JobId | None
    state: State
    reason: Reason | None
    message: str | None
    priority: int
    pool: str
    attempts: int
    failures: int
    losses: int
    exit_code: int | None
    worker: str | None
    due: datetime | None
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run and how it stands itself: all that a list of many needs."""

    run: RunRow
    job: JobRow
    commands: int
    """How many there are in it, groups not counted."""
    ended: int
    """How many of them have ended."""


@dataclass(frozen=True, slots=True)
class JobFailure:
    """A command of a run that failed."""

    job: JobId
    name: str
    index: int | None
    reason: Reason
    message: str | None
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that a waiting job waits for: a job of this store, or a name not seen yet."""

    job: JobId | None
    kind: Kind
    name: str
    index: int | None
    condition: str
    state: State | None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One execution that is over."""

    job: JobId
    attempt: int
    outcome: str
    reason: Reason | None
    exit_code: int | None
    worker: str | None
    started_at: datetime
    finished_at: datetime


class OutputChunk(NamedTuple):
    """A part of what an attempt wrote; parts of it stand in the order of their numbers."""

    chunk: int
    """What came with the attempt's end has the number `output.PIECES`; before it came less."""
    data: bytes


@dataclass(frozen=True, slots=True)
class StateCounts:
    """Commands of a run by state, groups not counted."""

    counts: Mapping[State, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker and what it does, as long as nobody has taken its claims back."""

    worker: WorkerId
    namespace: str
    pool: str
    name: str
    slots: int
    claims: int
    """How many claims it has."""
    is_draining: bool


class PoolDemand(NamedTuple):
    """What waits for workers of one pool."""

    ready: int
    oldest: datetime
    """When the first of them was submitted."""


@dataclass(frozen=True, slots=True)
class OwnedRun:
    """A run that was made from an object of a cluster."""

    run: JobId
    uid: UUID
    kind: Kind
    namespace: str
    name: str
    generation: int
    """The newest edition of the object that the store has heard."""
    submitted_at: datetime
    has_ended: bool

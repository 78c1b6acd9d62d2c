"""Values that the store's methods take and return: frozen, and the same in every dialect.

Values that exist once per attempt are msgspec structs: creating one takes a tenth of the time of a
frozen dataclass.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """A request to a running job. Every operation that ends its claim applies it."""

    CANCEL = "Cancel"
    EXPIRE = "Expire"
    SUSPEND = "Suspend"


class ReportResult(StrEnum):
    """The store's answer to a report on a claim."""

    ACCEPTED = "accepted"
    ALREADY = "already"
    """An earlier call with the same claim was accepted; this one changed nothing."""
    STALE = "stale"
    """The claim was taken away; nothing of the report was stored."""


class LossKind(StrEnum):
    """How a claim was lost together with the process that ran it; it decides what the job pays."""

    ALONE = "Alone"
    """Nothing else ran there: the job is charged a loss."""
    TOGETHER = "Together"
    """Others were lost with it: no loss is charged, but each job runs alone next."""


class DeleteRefusal(StrEnum):
    """The reason why a run cannot be deleted."""

    UNFINISHED = "Unfinished"
    """It has not ended, or its end is still being propagated."""
    NEEDED = "Needed"
    """An unfinished job of another run depends on it."""
    OWNED = "Owned"
    """It was made from a cluster object, from which the controller would make it again."""


class Outcome(StrEnum):
    """How an attempt ended, after the worker applied the job's retry policy."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    RETRY = "Retry"


@dataclass(frozen=True, slots=True)
class Registration:
    """A request to register a worker. `boot` is new for each process, so names can be reused."""

    token: str
    name: str
    boot: UUID
    slots: int


@dataclass(frozen=True, slots=True)
class Session:
    """A registered worker: its row, the secret key for its other calls, and its pool."""

    worker: WorkerId
    key: SessionKey
    lease_seconds: float
    namespace: str
    pool: str


class ClaimRef(NamedTuple):
    """The name of a claim in a report.

    The id alone is not enough: a delayed copy of a claim call can take another job under an id
    whose claim is over. The fence distinguishes the two.
    """

    claim: ClaimId
    fence: Fence


class ClaimedJob(msgspec.Struct, frozen=True):
    """A claim with everything that a worker needs to run one attempt."""

    job: JobId
    claim: ClaimId
    attempt: int
    failures: int
    losses: int
    fence: Fence
    namespace: str
    run: str
    """Name of the Job or Workflow object that was submitted."""
    name: str
    index: int | None
    spec: Spec
    item: Any = None
    """The array's item at `index`, if the array has items."""
    inputs: Mapping[str, Any] | None = None
    """Results of the upstreams by name; an array's result is a list by index. None: no results."""
    inputs_too_large: bool = False
    run_state: State | None = None
    """For a job of `finally`: how the tasks of its run have ended."""

    @property
    def ref(self) -> ClaimRef:
        """The name of this claim in a report."""
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
        """The name of this claim in a report."""
        return ClaimRef(self.claim, self.fence)


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The answer to a heartbeat. The worker must kill what it runs and `held` does not list."""

    held: Sequence[HeldClaim]
    is_draining: bool
    database: str
    """Identity of the database. A different one means that the database was replaced."""


class AttemptReport(msgspec.Struct, frozen=True):
    """A worker's report on the end of one claim."""

    job: JobId
    claim: ClaimId
    fence: Fence
    outcome: Outcome
    reason: Reason | None = None
    message: str | None = None
    exit_code: int | None = None
    delay_seconds: float = 0.0
    """With RETRY: the backoff."""
    result: Any = None
    """The job's result, any JSON value. None: no result."""
    output: bytes = b""
    """The output to store; of a streamed attempt, the part after its last chunk."""


@dataclass(frozen=True, slots=True)
class CompleteReply:
    """Answers in the order of the reports, and the new claims."""

    answers: Sequence[ReportResult]
    claimed: Sequence[ClaimedJob] = ()


@dataclass(frozen=True, slots=True)
class SubmittedRun:
    """A run in the store. `is_new` is False if it existed before the submission."""

    run: JobId
    is_new: bool
    is_suspended: bool


@dataclass(frozen=True, slots=True)
class RunUpdate:
    """The mutable fields of a cluster object that a run was made from."""

    generation: int
    """Generation of the object. The store ignores one that is not newer than the last."""
    is_cancelled: bool
    is_suspended: bool
    priority: int
    is_forced: bool = False
    """Whether jobs of `finally` are cancelled, too."""


@dataclass(frozen=True, slots=True)
class PoolGrant:
    """The credentials by which workers may register in a pool. Granting them again is harmless."""

    namespace: str
    pool: str
    token: str
    lease_seconds: float
    """For workers that register from now on."""
    password: str | None
    """Password of a database role for this pool. None: workers use the caller's own role."""
    connections: int
    """Connection limit of that role."""


@dataclass(frozen=True, slots=True)
class PoolLogin:
    """How the workers of a pool connect."""

    url: str
    connections: int | None
    """Connections that the server allows for all its clients. None: it has no limit."""


@dataclass(frozen=True, slots=True)
class ReapResult:
    """Effect of a reap: nothing (`was_reaped` is False) if the worker sent a heartbeat meanwhile.

    Neither list has jobs that a signal ended as Cancelled.
    """

    was_reaped: bool
    requeued: Sequence[JobId] = ()
    failed: Sequence[JobId] = ()


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of checking some waiting jobs."""

    missed: int
    """Jobs that wait although all their upstreams have ended; it must be 0."""
    last: int
    """The id to continue after. 0: no more jobs, start again."""


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
    is_cancelled: bool = False
    """Whether a user has cancelled it, or deleted its object; it may not have ended."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job and its current state.

    A group is Running from the start of its first member to the end of its last.
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
    """A run, its own job row and its progress: what a list of many runs needs."""

    run: RunRow
    job: JobRow
    commands: int
    """Number of its jobs, without groups."""
    ended: int
    """Number of them that have ended."""


@dataclass(frozen=True, slots=True)
class JobFailure:
    """A failed job of a run."""

    job: JobId
    name: str
    index: int | None
    reason: Reason
    message: str | None
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that a waiting job waits for: a job, or the name of a run not submitted yet."""

    job: JobId | None
    kind: Kind
    name: str
    index: int | None
    condition: str
    state: State | None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One execution that has ended."""

    job: JobId
    attempt: int
    outcome: str
    reason: Reason | None
    exit_code: int | None
    worker: str | None
    started_at: datetime
    finished_at: datetime


class OutputChunk(NamedTuple):
    """A part of an attempt's output. Chunks are ordered by number."""

    chunk: int
    """What came with the end of the attempt has the number `payloads.MAX_CHUNKS`."""
    data: bytes


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A registered worker."""

    worker: WorkerId
    namespace: str
    pool: str
    name: str
    slots: int
    claims: int
    """Number of claims that it holds."""
    is_draining: bool


class PoolDemand(NamedTuple):
    """The jobs that wait for a worker of one pool."""

    ready: int
    oldest: datetime
    """Submission time of the oldest."""


@dataclass(frozen=True, slots=True)
class OwnedRun:
    """A run that was made from a cluster object."""

    run: JobId
    uid: UUID
    kind: Kind
    namespace: str
    name: str
    generation: int
    """The newest generation of the object that the store has seen."""
    submitted_at: datetime
    has_ended: bool

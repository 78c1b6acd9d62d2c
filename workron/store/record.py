"""What is asked of a store, and what it answers to that: frozen, the same in every dialect.

Said here for `protocol`, through which every caller takes them. Of what there is one for each
attempt, msgspec makes it: in a tenth of the time that a frozen dataclass takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from workron.core.ids import ClaimId, Fence, JobId, SessionKey, WorkerId
    from workron.core.spec import Spec
    from workron.core.states import Reason


class Mark(StrEnum):
    """What somebody asked of a running job; every verb that ends its claim obeys."""

    CANCEL = "Cancel"
    EXPIRE = "Expire"
    HOLD = "Hold"


class Answer(StrEnum):
    """What became of a report on a claim."""

    ACCEPTED = "accepted"
    ALREADY = "already"
    """An earlier call with the same claim was accepted; this one changed nothing."""
    STALE = "stale"
    """The claim was taken back; nothing of it was stored."""


class Loss(StrEnum):
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


class Right(NamedTuple):
    """A claim as a report names it: its id says *this one*, its fence *newer*.

    The id alone is not enough: a late copy of a claim call may take a job under an id that is over.
    """

    claim: ClaimId
    fence: Fence


class Claimed(msgspec.Struct, frozen=True):
    """One claim: everything that a worker needs to run one attempt."""

    job: JobId
    claim: ClaimId
    attempt: int
    failures: int
    losses: int
    fence: Fence
    namespace: str
    root: str
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
    def right(self) -> Right:
        """What a report on it names."""
        return Right(self.claim, self.fence)


@dataclass(frozen=True, slots=True)
class Held:
    """A claim that the store counts as this worker's."""

    job: JobId
    claim: ClaimId
    fence: Fence
    mark: Mark | None

    @property
    def right(self) -> Right:
        """What a report on it names."""
        return Right(self.claim, self.fence)


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a beat. What a worker runs and `held` lacks, it must kill."""

    held: Sequence[Held]
    is_draining: bool
    database: str
    """Identity of the database: another one means another history."""


class End(msgspec.Struct, frozen=True):
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
class Completed:
    """Answers in the order of the ends, and the new claims."""

    answers: Sequence[Answer]
    claimed: Sequence[Claimed] = ()


@dataclass(frozen=True, slots=True)
class Submitted:
    """A root that is in the store now; `is_new` is False when it already was."""

    root: JobId
    is_new: bool
    is_held: bool


@dataclass(frozen=True, slots=True)
class Wish:
    """What an object of a cluster says now of what may be edited in it."""

    generation: int
    """The edition that says so; a store that has heard a newer one does nothing."""
    is_cancelled: bool
    is_suspended: bool
    priority: int


@dataclass(frozen=True, slots=True)
class Admission:
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
class Admitted:
    """What the database made of it."""

    url: str
    """What workers of the pool open it by."""
    connections: int | None
    """How many there may be to the server, of all who come; None: it counts none."""


class Sign(NamedTuple):
    """What one look sees of a worker's life: while it stays the same, nothing proves life.

    Which run of the server told it belongs to it: a server that lost its last commits may show a
    count that was seen before.
    """

    server: str
    beats: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """A worker as the maintainer sees it at one look."""

    worker: WorkerId
    sign: Sign
    lease_seconds: float
    name: str
    boot: UUID


@dataclass(frozen=True, slots=True)
class Reaped:
    """What a reap did: nothing (`was_reaped` False) if the worker had beaten meanwhile.

    Jobs that a mark has ended as Cancelled are in neither list.
    """

    was_reaped: bool
    requeued: Sequence[JobId] = ()
    failed: Sequence[JobId] = ()


@dataclass(frozen=True, slots=True)
class Audited:
    """What one look at waiting jobs has found."""

    missed: int
    """How many wait though all their upstreams have ended; it must be 0."""
    last: int
    """Where to go on; 0: there were no more, so from the beginning."""

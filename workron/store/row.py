"""What readers and the operator are given: rows as they stand, frozen, the same in every dialect.

Said here for `protocol`, through which every caller takes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from workron.core.ids import JobId, WorkerId
    from workron.core.plan import Kind
    from workron.core.states import Reason, State


@dataclass(frozen=True, slots=True)
class RootRow:
    """A root as it was submitted."""

    root: JobId
    last: JobId
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
    root: JobId
    kind: Kind
    name: str
    index: int | None
    member_of: JobId | None
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
class Head:
    """A root and how it stands itself: all that a list of many needs."""

    root: RootRow
    row: JobRow
    commands: int
    """How many there are in it, groups not counted."""
    ended: int
    """How many of them have ended."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A command of a root that failed."""

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
class Attempt:
    """One execution that is over."""

    job: JobId
    attempt: int
    outcome: str
    reason: Reason | None
    exit_code: int | None
    worker: str | None
    started_at: datetime
    finished_at: datetime


class Piece(NamedTuple):
    """A part of what an attempt wrote; parts of it stand in the order of their numbers."""

    chunk: int
    """What came with the attempt's end has the number `output.PIECES`; before it came less."""
    data: bytes


@dataclass(frozen=True, slots=True)
class Progress:
    """Commands of a root by state, groups not counted."""

    counts: Mapping[State, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker and what it does, as long as nobody has taken its claims back."""

    worker: WorkerId
    namespace: str
    pool: str
    name: str
    slots: int
    held: int
    """How many claims it has."""
    is_draining: bool


class Demand(NamedTuple):
    """What waits for workers of one pool."""

    ready: int
    oldest: datetime
    """When the first of them was submitted."""


@dataclass(frozen=True, slots=True)
class Owned:
    """A root that was made from an object of a cluster."""

    root: JobId
    uid: UUID
    kind: Kind
    namespace: str
    name: str
    generation: int
    """The newest edition of the object that the store has heard."""
    submitted_at: datetime
    has_ended: bool

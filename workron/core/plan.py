"""A plan: the jobs, edges and dependencies of one run, flat and ready to be stored.

`planner` makes it from a Job or a Workflow, and the store's `submit` takes it. A job is identified
by its offset from the run, which has offset 0; the store adds the base id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from workron.core import errors, payloads, trace_context
from workron.core.verdict import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID


WIDE_FAN_IN: Final = 64
"""With more upstreams than this, ends are appended and summed: updates of one row would queue."""


class Kind(StrEnum):
    """Kind of a row of `job`; all but JOB are groups, which end when their jobs have ended."""

    JOB = "Job"
    ARRAY = "Array"
    WORKFLOW = "Workflow"


@dataclass(frozen=True, slots=True)
class Identity:
    """Identifies a run: by name for people, by uid for programs."""

    namespace: str
    kind: Kind
    name: str
    uid: UUID


# Never changed, but not frozen: there are many, and frozen ones take five times as long to make.
@dataclass(slots=True)
class PlannedJob:
    """A command or a group. `spec` is the number of one of the plan's specs."""

    kind: Kind
    name: str
    spec: int
    index: int | None = None
    item: Any = None
    """The item of its array at `index`; elements share the rest of their spec."""
    group_id: int | None = None
    group_condition: Condition | None = None
    upstreams: int = 0
    """How many ends it waits for: edges, external dependencies, and for a group its jobs."""
    feeds_inputs: bool = False
    """Whether it has upstreams, whose results it gets."""


@dataclass(slots=True)
class Edge:
    """`downstream` waits for the end of `upstream`; both are offsets."""

    upstream: int
    downstream: int
    condition: Condition = Condition.SUCCEEDED


@dataclass(frozen=True, slots=True)
class ExternalDependency:
    """`downstream` waits for the end of another run, which may not exist yet."""

    downstream: int
    kind: Kind
    name: str
    condition: Condition = Condition.SUCCEEDED


@dataclass(frozen=True, slots=True)
class SchedulingTerms:
    """The part of a spec that the store acts on; only the worker reads the rest."""

    pool: str = "default"
    max_losses: int = 5
    start_after: datetime | None = None
    deadline_seconds: float | None = None
    needs_proof: bool = False
    """`overlap: Forbid`: after a loss the job waits for proof that its worker is dead."""


class Specs(Protocol):
    """The specs of a plan as they are stored: each once, even if many jobs share it."""

    def worded(self) -> Iterable[tuple[int, str]]:
        """Return the number and the JSON of each, in any order. Every call makes them again."""

    def within(self, parent: str) -> Specs:
        """Return the specs with this TRACEPARENT for every command that does not set one."""


@dataclass(frozen=True, slots=True)
class PlainSpecs:
    """Specs of commands, by number."""

    bodies: Sequence[Mapping[str, Any]]

    def worded(self) -> Iterable[tuple[int, str]]:
        """Return the number and the JSON of each."""
        return enumerate(map(payloads.to_json, self.bodies))

    def within(self, parent: str) -> PlainSpecs:
        """Return the specs with this TRACEPARENT for every command that does not set one."""
        return PlainSpecs([trace_context.with_traceparent(body, parent) for body in self.bodies])


class Digest(Protocol):
    """Digest of the content; a repeated submission has the same, another one has not."""

    def __call__(self) -> str:
        """Return the digest; it is computed once."""

    def steps(self) -> Iterable[None]:
        """Compute the digest, with a pause after each step."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One run."""

    identity: Identity
    digest: Digest
    nodes: Sequence[PlannedJob]
    terms: Sequence[SchedulingTerms]
    """The terms of each spec, by number."""
    specs: Specs
    edges: Sequence[Edge] = ()
    external: Sequence[ExternalDependency] = ()
    priority: int = 0
    is_suspended: bool = False
    generation: int | None = None
    """Generation of the object in the cluster, if it was made from one."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Labels and annotations, kept as written."""


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ExistingRuns(Generic[_T]):
    """Runs in the store that a plan may be equal to, or in conflict with."""

    known: _T | None
    """The run of the same uid."""
    unfinished: _T | None
    """The unfinished run of the same name."""
    digest: str | None
    """Digest of the unfinished run."""


def find_existing(plan: Plan, existing: ExistingRuns[_T], *, supersedes: bool) -> _T | None:
    """Return the existing run of a plan, or None if it is new; NameTakenError on a conflict."""
    if existing.known is not None:
        return existing.known
    if existing.unfinished is None:
        return None
    if existing.digest == plan.digest():
        return existing.unfinished
    if supersedes:
        return None
    identity = plan.identity
    raise errors.NameTakenError(identity.kind, identity.namespace, identity.name)

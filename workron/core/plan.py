"""What is submitted: the jobs, edges and waits of one run, flat and ready to be stored.

Made by `core.expand` from a Job or a Workflow, taken by the store's `submit`. Jobs are known by
their offset from the run, which is offset 0; the store adds the base id.
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
"""With more upstreams than this, arrivals are appended and summed, lest one row be a convoy."""


class Kind(StrEnum):
    """What a row of `job` is; all but JOB are groups, decided by their members."""

    JOB = "Job"
    ARRAY = "Array"
    WORKFLOW = "Workflow"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a run is: the object's name for people, its uid for machines."""

    namespace: str
    kind: Kind
    name: str
    uid: UUID


# Nodes and edges are many, and are never changed; but frozen ones take five times as long to make.
@dataclass(slots=True)
class PlannedJob:
    """One job: a command, or a group. `spec` is the number of one of the plan's specs."""

    kind: Kind
    name: str
    spec: int
    index: int | None = None
    item: Any = None
    """What `items` of its array has at `index`: all else of a spec the elements share."""
    group_id: int | None = None
    group_condition: Condition | None = None
    upstreams: int = 0
    """How many ends it waits for: edges, outside upstreams, and for a group its members."""
    feeds_inputs: bool = False
    """Whether it has upstreams whose results it is given."""


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
    """The part of a spec that the store itself acts on; all else only the worker reads."""

    pool: str = "default"
    max_losses: int = 5
    start_after: datetime | None = None
    deadline_seconds: float | None = None
    needs_proof: bool = False
    """`overlap: Forbid`: a lost claim waits for proof of its worker's death."""


class Specs(Protocol):
    """The specs of a plan as they are stored: once each, however many jobs share it."""

    def worded(self) -> Iterable[tuple[int, str]]:
        """Give the number of each and its JSON, in any order; work it out anew every time."""

    def within(self, parent: str) -> Specs:
        """Give the same, but commands carry this trace where they name none themselves."""


@dataclass(frozen=True, slots=True)
class PlainSpecs:
    """Specs of commands, by number."""

    bodies: Sequence[Mapping[str, Any]]

    def worded(self) -> Iterable[tuple[int, str]]:
        """Give the number of each and its JSON."""
        return enumerate(map(payloads.to_json, self.bodies))

    def within(self, parent: str) -> PlainSpecs:
        """Give the same, but all carry this trace where they name none themselves."""
        return PlainSpecs([trace_context.with_traceparent(body, parent) for body in self.bodies])


class Digest(Protocol):
    """Of the content: tells a repeated submission from another one of the same name."""

    def __call__(self) -> str:
        """Give it: what takes long about that is done once."""

    def steps(self) -> Iterable[None]:
        """Work it out, with a pause after each step; whoever asks then has it at once."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One run, whole."""

    identity: Identity
    digest: Digest
    nodes: Sequence[PlannedJob]
    terms: Sequence[SchedulingTerms]
    """Of each spec."""
    specs: Specs
    edges: Sequence[Edge] = ()
    external: Sequence[ExternalDependency] = ()
    priority: int = 0
    is_suspended: bool = False
    generation: int | None = None
    """Of the object of a cluster that it was made from, as the cluster counts them."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Labels and annotations, given back as they came."""


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ExistingRuns(Generic[_T]):
    """What stands where a plan wants to go."""

    known: _T | None
    """Of the same uid."""
    unfinished: _T | None
    """Of the same name, and not at its end."""
    digest: str | None
    """Of what is unfinished."""


def find_existing(plan: Plan, standing: ExistingRuns[_T], *, supersedes: bool) -> _T | None:
    """Give what is there already for this plan; None: it is new. NameTakenError if neither."""
    if standing.known is not None:
        return standing.known
    if standing.unfinished is None:
        return None
    if standing.digest == plan.digest():
        return standing.unfinished
    if supersedes:
        return None
    who = plan.identity
    raise errors.NameTakenError(who.kind, who.namespace, who.name)

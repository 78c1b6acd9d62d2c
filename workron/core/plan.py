"""A plan: the jobs, edges and dependencies of one run, flat and ready to be stored.

`planner` makes it from a Job or a Workflow, and the store's `submit` takes it. A job is identified
by its offset from the run, which has offset 0; the store adds the base id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, payloads, trace_context
from workron.core.verdict import Condition

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


WIDE_FAN_IN: Final = 64
"""With more upstreams than this, ends are appended and summed: updates of one row would queue."""


class Kind(StrEnum):
    """Kind of a row of `job`; all but JOB are groups, which end when their jobs have ended."""

    JOB = "Job"
    ARRAY = "Array"
    WORKFLOW = "Workflow"
    TASKS = "Tasks"
    """All tasks of a workflow that has `finally`. Users do not see it."""


KINDS_WITH_DEADLINE: Final = frozenset({Kind.JOB, Kind.WORKFLOW})
"""The deadline of an array is one of each element."""

TASKS_OFFSET: Final = 1
"""Offset of the group of the tasks in a workflow that has `finally`."""
TASKS_NAME: Final = "(tasks)"
"""Name of that group. No task can have it."""


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
    max_failures: int | None = None
    """How many elements of an array may fail; the array succeeds nevertheless."""


Specs = Callable[[str | None], Iterable[tuple[int, str]]]
"""Encodes the specs of a plan: the number and the JSON of each, in any order, with this TRACEPARENT
for every command that does not set one. Called when they are stored, so that a large workflow is
not in memory twice."""


def plain_specs(bodies: Sequence[Mapping[str, Any]]) -> Specs:
    """Return the specs of commands, by number."""

    def encode(traceparent: str | None) -> Iterable[tuple[int, str]]:
        traced = (trace_context.with_traceparent(body, traceparent) for body in bodies)
        return enumerate(map(payloads.to_json, traced))

    return encode


@dataclass(frozen=True, slots=True)
class Plan:
    """One run."""

    identity: Identity
    digest: Callable[[], str]
    """Returns the digest of the content; a repeated submission has the same, another one has not.
    It costs least after the specs were encoded."""
    nodes: Sequence[PlannedJob]
    terms: Sequence[SchedulingTerms]
    """The terms of each spec, by number."""
    specs: Specs
    edges: Sequence[Edge] = ()
    external: Sequence[ExternalDependency] = ()
    priority: int = 0
    is_suspended: bool = False
    is_fail_fast: bool = False
    """Whether the first failed task cancels the run."""
    finally_from: int | None = None
    """Offset of the first job of `finally`; the others follow it."""
    generation: int | None = None
    """Generation of the object in the cluster, if it was made from one."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Labels and annotations, kept as written."""
    traceparent: str | None = None
    """TRACEPARENT of every command that does not set one."""

    def encode_specs(self) -> Iterable[tuple[int, str]]:
        """Return the number and the JSON of each spec; every call encodes them again."""
        return self.specs(self.traceparent)


def repeats(plan: Plan, digest: str | None, *, is_cancelled: bool, supersedes: bool) -> bool:
    """Return whether a plan repeats the unfinished run of its name, which has this digest.

    NameTakenError if it has other content and does not supersede that run. A plan that supersedes
    does not repeat a cancelled run, whose tasks of `finally` may run for long.
    """
    if is_cancelled and supersedes:
        return False
    if digest is None or digest == plan.digest():
        return digest is not None
    if supersedes:
        return False
    identity = plan.identity
    raise errors.NameTakenError(identity.kind, identity.namespace, identity.name)

"""From what a person wrote to what is stored: a Job or a Workflow as a flat plan.

Called wherever something is submitted or only checked. The run is offset 0; the tasks follow in
topological order, an array as its group and then its elements. A task waits for another as a
whole: for a command's own end, for an array's group, which ends when its elements have. So edges
grow with the elements of the waiting side only, and with `each` one by one.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, graph, payloads, trace_context
from workron.core.jobspec import Overlap
from workron.core.model.job import JobSpec
from workron.core.model.workflow import WorkflowSpec
from workron.core.plan import (
    Edge,
    ExternalDependency,
    Identity,
    Kind,
    PlainSpecs,
    Plan,
    PlannedJob,
    SchedulingTerms,
)
from workron.core.verdict import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from workron.core.model.job import CommandSpec, Job
    from workron.core.model.meta import ObjectMeta
    from workron.core.model.workflow import Task, TaskDependency, Workflow


_ELSEWHERE: Final = frozenset({"name", "dependsOn", "items"})
"""Fields of a task that are kept as rows, and so need not travel with every claim."""
_NO_TASKS: Final = '"tasks":[]'


@dataclass(frozen=True, slots=True)
class TaskSpecs:
    """The workflow's own is number 0; those of its tasks follow as they are written."""

    spec: WorkflowSpec
    parent: str | None = None
    """The trace that tasks carry which name none themselves."""

    def within(self, parent: str) -> TaskSpecs:
        """Give the same, but the tasks carry this trace where they name none themselves."""
        return dataclasses.replace(self, parent=parent)

    def worded(self) -> Iterator[tuple[int, str]]:
        """Give the number of each and its JSON: the workflow's last, which has all the others."""
        worded: list[str] = []
        for some in self.spec.slices():
            written = some.as_manifest()["tasks"]
            first = len(worded) + 1
            worded += payloads.models_to_json(written)
            yield from enumerate(payloads.models_to_json(self._bodies(written)), first)
        yield 0, self._whole(worded)

    def _bodies(self, written: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        bodies: list[Mapping[str, Any]] = [
            {name: value for name, value in task.items() if name not in _ELSEWHERE}
            for task in written
        ]
        return (
            [trace_context.with_traceparent(body, self.parent) for body in bodies]
            if self.parent
            else bodies
        )

    def _whole(self, worded: Iterable[str]) -> str:
        bare = self.spec.model_copy(update={"tasks": ()})
        before, _, after = payloads.to_json(bare.as_manifest()).partition(_NO_TASKS)
        return f'{before}"tasks":[{",".join(worded)}]{after}'


_EDITABLE: Final = {"suspend", "cancel", "priority", "ttl_seconds_after_finished"}
_DIGEST_NO_TASKS: Final = b'"tasks":[]'


class SpecDigest:
    """That of a Job or a Workflow; known for good when it was worked out once."""

    def __init__(self, kind: Kind, spec: JobSpec | WorkflowSpec) -> None:
        self._kind = kind
        self._spec = spec
        self._known = ""

    def __call__(self) -> str:
        """Give it."""
        for _ in self.steps():
            pass
        return self._known

    def steps(self) -> Iterator[None]:
        """Work it out, with a pause after each step; whoever asks then has it at once."""
        if self._known:
            return
        digest = hashlib.sha256()
        for piece in self._pieces():
            digest.update(piece)
            yield
        self._known = digest.hexdigest()

    def _pieces(self) -> Iterator[bytes]:
        """Give the content, each text of it in its place: of a workflow a few tasks at a time."""
        spec = self._spec
        if not isinstance(spec, WorkflowSpec):
            yield self._worded(spec)
            return
        before, _, after = self._worded(spec.model_copy(update={"tasks": ()})).partition(
            _DIGEST_NO_TASKS
        )
        yield before + b'"tasks":['
        comma = b""
        for some in spec.slices():
            yield comma + b",".join(map(payloads.canonical_json, _content(some)["tasks"]))
            comma = b","
        yield b"]" + after

    def _worded(self, spec: JobSpec | WorkflowSpec) -> bytes:
        return payloads.canonical_json({"kind": self._kind, "spec": _content(spec)})


def _content(spec: JobSpec | WorkflowSpec) -> dict[str, Any]:
    # Defaults are left out, so that writing one down does not make it other content; all that is
    # not set is one, and need not even be compared.
    return spec.model_dump(
        mode="json", by_alias=True, exclude_unset=True, exclude_defaults=True, exclude=_EDITABLE
    )


MAX_EDGES: Final = 2_000_000
"""Of one workflow. Elements each waiting for many tasks would otherwise multiply without end."""

_TERMS_AT_HAND: Final = 64


def plan_job(job: Job, uid: UUID) -> Plan:
    """Flatten a Job; GraphError if it waits for itself."""
    run = _run(job, uid)
    outside = [ExternalDependency(0, up.kind, up.name, up.when) for up in job.spec.depends_on]
    for at, up in enumerate(outside):
        if (up.kind, up.name) == (Kind.JOB, run.identity.name):
            raise errors.GraphError(
                f"Job {up.name!r} depends on itself; no job can wait for its own end",
                *("spec", "dependsOn", at),
            )
    node = PlannedJob(
        Kind.JOB, run.identity.name, 0, upstreams=len(outside), feeds_inputs=bool(outside)
    )
    specs = PlainSpecs([job.spec.as_manifest()])
    return dataclasses.replace(
        run, nodes=[node], terms=[_terms(job.spec)], specs=specs, external=outside
    )


def plan_workflow(workflow: Workflow, uid: UUID) -> Plan:
    """Flatten a Workflow; GraphError if its tasks form no DAG or its arrays do not pair."""
    run = _run(workflow, uid)
    name, tasks = run.identity.name, workflow.spec.tasks
    try:
        _bound(tasks)
        places = _places(tasks)
        edges = _edges(places)
    except errors.GraphError as error:
        raise errors.GraphError(f"Workflow {name!r}: {error}", "spec", *error.path) from None
    links = itertools.chain.from_iterable(task.depends_on for task in tasks)
    handled = {up.name for up in links if up.when is not Condition.SUCCEEDED}
    nodes = [PlannedJob(Kind.WORKFLOW, name, 0, upstreams=len(tasks))]
    for place in places.values():
        group_condition = Condition.HANDLED_TASK if place.task.name in handled else Condition.TASK
        if place.is_array:
            nodes += _array(place, group_condition)
        else:
            nodes.append(_single(place, group_condition))
    terms = [SchedulingTerms(), *map(_terms, tasks)]
    specs = TaskSpecs(workflow.spec)
    return dataclasses.replace(run, nodes=nodes, terms=terms, specs=specs, edges=edges)


@dataclass(slots=True)
class _Place:
    """Where a task stands in the plan; `offset` is that of its command, or of its group."""

    task: Task
    at: int
    """Among the tasks, as they are written."""
    offset: int
    commands: range
    is_array: bool


def _places(tasks: Sequence[Task]) -> dict[str, _Place]:
    order = graph.check(
        [task.name for task in tasks], [[up.name for up in task.depends_on] for task in tasks]
    )
    places: dict[str, _Place] = {}
    offset = 1
    for at in order:
        task = tasks[at]
        is_array = task.is_array
        first = offset + is_array
        last = first + (task.size if is_array else 1)
        places[task.name] = _Place(task, at, offset, range(first, last), is_array)
        offset = last
    return places


def _bound(tasks: Sequence[Task]) -> None:
    total = sum(_edge_count(task) for task in tasks if task.depends_on)
    if total <= MAX_EDGES:
        return
    widest = max(tasks, key=_edge_count)
    raise errors.GraphError(
        f"its dependencies come to {total:,} edges; at most {MAX_EDGES:,} are allowed. The most,"
        f" {widest.size:,} x {len(widest.depends_on):,}, are those of {widest.name!r}: let it wait"
        " for one task that waits for the others",
        *("tasks", tasks.index(widest), "dependsOn"),
    )


def _edge_count(task: Task) -> int:
    return task.size * len(task.depends_on)


def _edges(places: Mapping[str, _Place]) -> list[Edge]:
    edges: list[Edge] = []
    for place in places.values():
        for which, up in enumerate(place.task.depends_on):
            sources = _sources(place, places[up.name], up, which)
            edges += map(Edge, sources, place.commands, itertools.repeat(up.when))
    return edges


def _sources(place: _Place, upstream: _Place, up: TaskDependency, which: int) -> Iterable[int]:
    if not up.each:
        return itertools.repeat(upstream.offset)
    task = place.task
    if not (task.is_array and upstream.task.is_array and task.size == upstream.task.size):
        raise errors.GraphError(
            f"task {task.name!r} depends on each of {up.name!r}, which pairs two arrays of one"
            f" length; but {_extent(task)} and {_extent(upstream.task)}",
            *("tasks", place.at, "dependsOn", which, "each"),
        )
    return upstream.commands


def _extent(task: Task) -> str:
    if not task.is_array:
        return f"{task.name!r} is no array"
    return f"{task.name!r} has {task.size:,} element{'s' if task.size > 1 else ''}"


def _single(place: _Place, group_condition: Condition) -> PlannedJob:
    ups = len(place.task.depends_on)
    return PlannedJob(
        Kind.JOB, place.task.name, place.at + 1, None, None, 0, group_condition, ups, ups > 0
    )


def _array(place: _Place, group_condition: Condition) -> list[PlannedJob]:
    task, name, spec, ups = place.task, place.task.name, place.at + 1, len(place.task.depends_on)
    group = PlannedJob(Kind.ARRAY, name, spec, None, None, 0, group_condition, task.size)
    kind, group_condition, whole = Kind.JOB, Condition.MEMBER, place.offset
    items = task.items or itertools.repeat(None, task.size)
    elements = (
        PlannedJob(kind, name, spec, index, item, whole, group_condition, ups, ups > 0)
        for index, item in enumerate(items)
    )
    return [group, *elements]


def _run(resource: Job | Workflow, uid: UUID) -> Plan:
    """Make the plan without its content: what a Job and a Workflow have in common."""
    metadata, spec = resource.metadata, resource.spec
    kind = Kind(resource.kind)
    notes = {"labels": metadata.labels, "annotations": metadata.annotations}
    return Plan(
        identity=Identity(metadata.namespace, kind, _name(metadata, uid), uid),
        digest=SpecDigest(kind, spec),
        nodes=(),
        terms=(),
        specs=PlainSpecs(()),
        priority=spec.priority,
        is_suspended=spec.suspend,
        metadata=notes,
    )


def _name(metadata: ObjectMeta, uid: UUID) -> str:
    # The API server would have made a name; elsewhere the uid is as unique as its random suffix.
    return metadata.name or f"{metadata.generate_name}{uid.hex[-5:]}"


def _terms(spec: CommandSpec) -> SchedulingTerms:
    start_after = spec.start_after if isinstance(spec, JobSpec) else None
    return _shared(spec.pool, spec.max_worker_losses, start_after, spec.deadline, spec.overlap)


@functools.lru_cache(_TERMS_AT_HAND)
def _shared(
    pool: str,
    max_losses: int,
    start_after: datetime | None,
    deadline: timedelta | None,
    overlap: Overlap,
) -> SchedulingTerms:
    """Make the terms once for the many tasks that have the same."""
    seconds = deadline.total_seconds() if deadline else None
    return SchedulingTerms(
        pool, max_losses, start_after, seconds, needs_proof=overlap is Overlap.FORBID
    )

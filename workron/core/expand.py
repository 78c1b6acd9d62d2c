"""From what a person wrote to what is stored: a Job or a Workflow as a flat plan.

Called wherever something is submitted or only checked. The root is offset 0; the tasks follow in
topological order, an array as its group and then its elements. A task waits for another as a
whole: for a command's own end, for an array's group, which ends when its elements have. So edges
grow with the elements of the waiting side only, and with `each` one by one.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, graph
from workron.core.command import Overlap
from workron.core.model.job import JobSpec
from workron.core.plan import Edge, Identity, Kind, Node, Outside, Plan, Spec, Terms
from workron.core.verdict import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from workron.core.model.command import CommandSpec
    from workron.core.model.job import Job
    from workron.core.model.meta import ObjectMeta
    from workron.core.model.workflow import Task, TaskDependency, Workflow, WorkflowSpec

MAX_EDGES: Final = 2_000_000
"""Of one workflow. Elements each waiting for many tasks would otherwise multiply without end."""

_EDITABLE: Final = {"suspend", "cancel", "priority", "ttl_seconds_after_finished"}
_ELSEWHERE: Final = frozenset({"name", "dependsOn", "items"})
"""Fields of a task that are kept as rows, and so need not travel with every claim."""


def plan_job(job: Job, uid: UUID) -> Plan:
    """Flatten a Job; GraphError if it waits for itself."""
    root = _root(job, uid)
    outside = [Outside(0, up.kind, up.name, up.when) for up in job.spec.depends_on]
    for at, up in enumerate(outside):
        if (up.kind, up.name) == (Kind.JOB, root.identity.name):
            raise errors.GraphError(
                f"Job {up.name!r} depends on itself; no job can wait for its own end",
                *("spec", "dependsOn", at),
            )
    node = Node(Kind.JOB, root.identity.name, 0, upstreams=len(outside), feeds_inputs=bool(outside))
    spec = Spec(job.spec.as_manifest(), _terms(job.spec))
    return dataclasses.replace(root, nodes=[node], specs=[spec], outside=outside)


def plan_workflow(workflow: Workflow, uid: UUID) -> Plan:
    """Flatten a Workflow; GraphError if its tasks form no DAG or its arrays do not pair."""
    root = _root(workflow, uid)
    name, tasks = root.identity.name, workflow.spec.tasks
    try:
        _bound(tasks)
        places = _places(tasks)
        edges = _edges(places)
    except errors.GraphError as error:
        raise errors.GraphError(f"Workflow {name!r}: {error}", "spec", *error.path) from None
    links = itertools.chain.from_iterable(task.depends_on for task in tasks)
    handled = {up.name for up in links if up.when is not Condition.SUCCEEDED}
    nodes = [Node(Kind.WORKFLOW, name, 0, upstreams=len(tasks))]
    for place in places.values():
        nodes += _nodes(place, is_handled=place.task.name in handled)
    return dataclasses.replace(root, nodes=nodes, specs=_specs(workflow.spec), edges=edges)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a task stands in the plan; `offset` is that of its command, or of its group."""

    task: Task
    at: int
    """Among the tasks, as they are written."""
    offset: int

    @property
    def spec(self) -> int:
        return self.at + 1

    @property
    def commands(self) -> range:
        first = self.offset + self.task.is_array
        return range(first, first + self.task.size)


def _places(tasks: Sequence[Task]) -> dict[str, _Place]:
    order = graph.check(
        [task.name for task in tasks], [[up.name for up in task.depends_on] for task in tasks]
    )
    places: dict[str, _Place] = {}
    offset = 1
    for at in order:
        place = places[tasks[at].name] = _Place(tasks[at], at, offset)
        offset = place.commands.stop
    return places


def _bound(tasks: Sequence[Task]) -> None:
    total = sum(map(_edge_count, tasks))
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
        commands = place.commands
        for which, up in enumerate(place.task.depends_on):
            sources = _sources(place, places[up.name], up, which)
            edges += map(Edge, sources, commands, itertools.repeat(up.when))
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


def _nodes(place: _Place, *, is_handled: bool) -> list[Node]:
    task = place.task
    bearing = Condition.HANDLED_TASK if is_handled else Condition.TASK
    node = functools.partial(Node, name=task.name, spec=place.spec)
    command = functools.partial(
        node, Kind.JOB, upstreams=len(task.depends_on), feeds_inputs=bool(task.depends_on)
    )
    if not task.is_array:
        return [command(member_of=0, bearing=bearing)]
    group = node(Kind.ARRAY, member_of=0, bearing=bearing, upstreams=task.size)
    element = functools.partial(command, member_of=place.offset, bearing=Condition.MEMBER)
    items = task.items or itertools.repeat(None, task.size)
    return [group, *(element(index=index, item=item) for index, item in enumerate(items))]


def _root(resource: Job | Workflow, uid: UUID) -> Plan:
    """Make the plan without its content: what a Job and a Workflow have in common."""
    metadata, spec = resource.metadata, resource.spec
    kind = Kind(resource.kind)
    # Defaults are left out, so that writing one down does not make it other content.
    content = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=_EDITABLE)
    notes = {"labels": metadata.labels, "annotations": metadata.annotations}
    return Plan(
        identity=Identity(metadata.namespace, kind, _name(metadata, uid), uid),
        digest=_digest({"kind": kind, "spec": content}),
        nodes=(),
        specs=(),
        priority=spec.priority,
        is_suspended=spec.suspend,
        metadata=notes,
    )


def _name(metadata: ObjectMeta, uid: UUID) -> str:
    # The API server would have made a name; elsewhere the uid is as unique as its random suffix.
    return metadata.name or f"{metadata.generate_name}{uid.hex[-5:]}"


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _specs(spec: WorkflowSpec) -> list[Spec]:
    """Give the workflow's own spec, then those of its tasks in the order of writing."""
    body = spec.as_manifest()
    bodies = [
        {name: value for name, value in task.items() if name not in _ELSEWHERE}
        for task in body["tasks"]
    ]
    return [Spec(body), *map(Spec, bodies, map(_terms, spec.tasks))]


def _terms(spec: CommandSpec) -> Terms:
    return Terms(
        pool=spec.pool,
        max_losses=spec.max_losses,
        start_after=spec.start_after if isinstance(spec, JobSpec) else None,
        deadline_seconds=spec.deadline.total_seconds() if spec.deadline else None,
        needs_proof=spec.overlap is Overlap.FORBID,
    )

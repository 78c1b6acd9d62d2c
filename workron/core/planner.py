"""From a Job or Workflow to the flat plan that is stored.

The run has offset 0. The tasks follow in topological order, an array as its group and then its
elements. A task waits for another task as a whole: for the end of its command, or of the group
of an array, which ends when all its elements have. So only the elements of the downstream task
need an edge each; with `each`, every pair of elements has one.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, formats, graph, payloads, trace_context
from workron.core.jobspec import Overlap
from workron.core.model.job import JobSpec
from workron.core.model.workflow import Task, WorkflowSpec
from workron.core.plan import (
    Edge,
    ExternalDependency,
    Identity,
    Kind,
    Plan,
    PlannedJob,
    SchedulingTerms,
    plain_specs,
)
from workron.core.verdict import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from workron.core.model.job import CommandSpec, Job
    from workron.core.model.workflow import TaskDependency, Workflow


_ROW_FIELDS: Final = ("name", "dependsOn", "items")
"""Fields of a task that are stored as rows, and need not be sent with every claim."""
_NO_TASKS: Final = '"tasks":[]'
_EDITABLE: Final = {"suspend", "cancel", "priority", "ttl_seconds_after_finished"}


class WorkflowSpecs:
    """Encodes the specs of a workflow, and its digest from the same texts."""

    def __init__(self, spec: WorkflowSpec) -> None:
        self._spec = spec
        self._digest: str | None = None

    def encode(self, traceparent: str | None) -> Iterator[tuple[int, str]]:
        """Encode the specs of the tasks, numbered from 1 in their order, and the workflow's own.

        The workflow's own, with number 0, has all fields of its tasks.
        """
        whole: list[str] = []
        for some in self._spec.slices():
            first = len(whole) + 1
            tasks = _content(some)["tasks"]
            # These fields leave the tasks; the others are the bodies.
            rows = [{key: task.pop(key) for key in _ROW_FIELDS if key in task} for task in tasks]
            texts = payloads.models_to_json(tasks)
            whole += [
                f"{row[:-1]},{text[1:]}"
                for row, text in zip(payloads.models_to_json(rows), texts, strict=True)
            ]
            if traceparent:
                traced = [trace_context.with_traceparent(body, traceparent) for body in tasks]
                texts = payloads.models_to_json(traced)
            yield from enumerate(texts, first)
        tasks_text = f'"tasks":[{",".join(whole)}]'
        bare = self._spec.model_copy(update={"tasks": ()})
        before, _, after = payloads.to_json(_content(bare)).partition(_NO_TASKS)
        yield 0, f"{before}{tasks_text}{after}"
        fixed = payloads.to_json(_content(bare, exclude=_EDITABLE))
        self._digest = _digest(fixed + tasks_text)

    def digest(self) -> str:
        """Return the digest; encodes the specs unless that was done before."""
        if self._digest is None:
            for _ in self.encode(None):
                pass
        assert self._digest is not None
        return self._digest


def _content(spec: JobSpec | WorkflowSpec, exclude: set[str] | None = None) -> dict[str, Any]:
    # Defaults are left out, so that a manifest that writes one is the same content. Fields that are
    # not set are defaults and need no comparison. The models decide the order of the fields.
    return spec.model_dump(
        mode="json", by_alias=True, exclude_unset=True, exclude_defaults=True, exclude=exclude
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _job_digest(spec: JobSpec) -> str:
    return _digest(payloads.to_json(_content(spec, exclude=_EDITABLE)))


MAX_EDGES: Final = 2_000_000
"""Edges of one workflow: each element of an array has one for each task that it waits for."""

_CACHED_TERMS: Final = 64


def plan_job(job: Job, uid: UUID, *, has_caller: bool = False) -> Plan:
    """Plan a Job; SpecError if it depends on itself or needs the machine of its caller.

    With `has_caller`, the process that submits it also runs it, and has the values for `fromEnv`.
    """
    identity = _identity(job, uid)
    outside = [ExternalDependency(0, up.kind, up.name, up.when) for up in job.spec.depends_on]
    for at, up in enumerate(outside):
        if (up.kind, up.name) == (Kind.JOB, identity.name):
            raise errors.GraphError(
                f"Job {up.name!r} depends on itself; remove that dependency",
                *("spec", "dependsOn", at),
            )
    _check_command(job.spec, "spec", has_caller=has_caller)
    ups = len(outside)
    return _plan(
        job,
        identity,
        nodes=[PlannedJob(Kind.JOB, identity.name, 0, upstreams=ups, feeds_inputs=ups > 0)],
        terms=[_terms(job.spec, job.spec.start_after)],
        specs=plain_specs([job.spec.as_manifest()]),
        digest=functools.cache(functools.partial(_job_digest, job.spec)),
        external=outside,
    )


def plan_workflow(workflow: Workflow, uid: UUID, *, has_caller: bool = False) -> Plan:
    """Plan a Workflow; SpecError if its tasks do not form a DAG or need their caller's machine."""
    identity, tasks = _identity(workflow, uid), workflow.spec.tasks
    try:
        _check_edge_count(tasks)
        places = _places(tasks)
        edges = _edges(places)
    except errors.GraphError as error:
        message = f"Workflow {identity.name!r}: {error}"
        raise errors.GraphError(message, "spec", *error.path) from None
    for at, task in enumerate(tasks):
        _check_command(task, "spec", "tasks", at, has_caller=has_caller)
    nodes = [PlannedJob(Kind.WORKFLOW, identity.name, 0, upstreams=len(tasks))]
    for place in places.values():
        condition = Condition.ALLOWED_TASK if place.task.allow_failure else Condition.TASK
        if place.is_array:
            nodes += _array(place, condition)
        else:
            nodes.append(_command(place, condition))
    specs = WorkflowSpecs(workflow.spec)
    return _plan(
        workflow,
        identity,
        nodes=nodes,
        terms=[SchedulingTerms(), *map(_task_terms, tasks)],
        specs=specs.encode,
        digest=specs.digest,
        edges=edges,
    )


def _check_command(spec: CommandSpec, *path: str | int, has_caller: bool) -> None:
    if spec.workdir is not None and not spec.workdir.startswith("/"):
        raise errors.SpecError(
            f"the workdir {formats.quoted(spec.workdir)} is relative; only `workron run` resolves"
            " it, from the folder of the file: write an absolute path",
            *(*path, "workdir"),
        )
    for at, variable in enumerate(() if has_caller else spec.env):
        if variable.from_env is not None:
            raise errors.SpecError(
                f"fromEnv takes {variable.from_env} from the environment of `workron run` and works"
                " only there; write a value, or set the variable where the worker runs: in env of"
                " the WorkerPool, from a Secret",
                *(*path, "env", at, "fromEnv"),
            )


def _identity(resource: Job | Workflow, uid: UUID) -> Identity:
    metadata = resource.metadata
    # In a cluster the API server generates the name. The end of the uid is as unique as its suffix.
    name = metadata.name or f"{metadata.generate_name}{uid.hex[-5:]}"
    return Identity(metadata.namespace, Kind(resource.kind), name, uid)


def _plan(resource: Job | Workflow, identity: Identity, **jobs: Any) -> Plan:
    metadata, spec = resource.metadata, resource.spec
    return Plan(
        identity=identity,
        priority=spec.priority,
        is_suspended=spec.suspend,
        metadata={"labels": metadata.labels, "annotations": metadata.annotations},
        **jobs,
    )


@dataclass(slots=True)
class _Place:
    """The place of a task in a plan; `offset` is that of its command or group."""

    task: Task
    at: int
    """Position in the manifest."""
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


def _check_edge_count(tasks: Sequence[Task]) -> None:
    total = sum(_edge_count(task) for task in tasks if task.depends_on)
    if total <= MAX_EDGES:
        return
    widest = max(tasks, key=_edge_count)
    raise errors.GraphError(
        f"its dependencies are {total:,} edges; at most {MAX_EDGES:,} are allowed."
        f" {widest.name!r} has the most, {widest.size:,} x {len(widest.depends_on):,}:"
        " let it depend on one task that depends on the others",
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
        return f"{task.name!r} is not an array"
    return f"{task.name!r} has {task.size:,} element{'s' if task.size > 1 else ''}"


def _command(place: _Place, condition: Condition) -> PlannedJob:
    ups = len(place.task.depends_on)
    return PlannedJob(
        Kind.JOB, place.task.name, place.at + 1, None, None, 0, condition, ups, ups > 0
    )


def _array(place: _Place, condition: Condition) -> Iterator[PlannedJob]:
    task, name, spec, ups = place.task, place.task.name, place.at + 1, len(place.task.depends_on)
    yield PlannedJob(Kind.ARRAY, name, spec, None, None, 0, condition, task.size)
    for index, item in enumerate(task.items or itertools.repeat(None, task.size)):
        yield PlannedJob(
            Kind.JOB, name, spec, index, item, place.offset, Condition.MEMBER, ups, ups > 0
        )


def _terms(
    spec: CommandSpec, start_after: datetime | None = None, max_failures: int | None = None
) -> SchedulingTerms:
    return _cached_terms(
        spec.pool, spec.max_worker_losses, start_after, spec.deadline, spec.overlap, max_failures
    )


def _task_terms(task: Task) -> SchedulingTerms:
    allowed = None if task.max_failures is None else task.allowed_failures
    return _terms(task, max_failures=allowed)


@functools.lru_cache(_CACHED_TERMS)
def _cached_terms(
    pool: str,
    max_losses: int,
    start_after: datetime | None,
    deadline: timedelta | None,
    overlap: Overlap,
    max_failures: int | None,
) -> SchedulingTerms:
    """Return one object for all tasks with the same terms."""
    seconds = deadline.total_seconds() if deadline else None
    needs_proof = overlap is Overlap.FORBID
    return SchedulingTerms(pool, max_losses, start_after, seconds, needs_proof, max_failures)

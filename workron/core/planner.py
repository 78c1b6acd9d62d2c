"""From a Job or Workflow to the flat plan that is stored.

The run has offset 0. The tasks follow in topological order, an array as its group and then its
elements. A task waits for another task as a whole: for the end of its command, or of the group
of an array, which ends when all its elements have. So only the elements of the downstream task
need an edge each; with `each`, every pair of elements has one.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, formats, graph
from workron.core.jobspec import MAX_ENV_VARS, Overlap
from workron.core.plan import (
    TASKS_NAME,
    TASKS_OFFSET,
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
from workron.core.workflow_specs import WorkflowSpecs, job_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from workron.core.model.job import CommandSpec, EnvVar, Job
    from workron.core.model.workflow import Task, TaskDependency, Workflow, WorkflowSpec


MAX_EDGES: Final = 2_000_000
"""Edges of one workflow: each element of an array has one for each task that it waits for."""

MAX_ENV_CHARACTERS: Final = 64_000_000
"""Of the variables of a workflow in all its tasks: each task stores them."""

MAX_EXTERNAL: Final = 1_000
"""Elements of an array that can depend on another run: each is looked up by name."""

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
        digest=functools.cache(functools.partial(job_digest, job.spec)),
        external=outside,
    )


def plan_workflow(workflow: Workflow, uid: UUID, *, has_caller: bool = False) -> Plan:
    """Plan a Workflow; SpecError if its tasks do not form a DAG or need their caller's machine."""
    identity, spec = _identity(workflow, uid), workflow.spec
    tasks = spec.resolved_tasks()
    try:
        sections = _sections(spec, tasks)
        edges = [edge for section in sections for edge in _edges(section)]
        external = [one for section in sections for one in _external(identity, section)]
    except errors.GraphError as error:
        message = f"Workflow {identity.name!r}: {error}"
        raise errors.GraphError(message, "spec", *error.path) from None
    _check_env(spec, tasks, has_caller=has_caller)
    for at, task in enumerate(spec.all_tasks):
        if task.workdir is not None or task.env:
            _check_command(task, "spec", *spec.path_of(at), has_caller=has_caller)
    specs = WorkflowSpecs(spec, tasks)
    seconds = spec.deadline.total_seconds() if spec.deadline else None
    return _plan(
        workflow,
        identity,
        nodes=_nodes(identity.name, sections),
        terms=[SchedulingTerms(deadline_seconds=seconds), *map(_task_terms, tasks)],
        specs=specs.encode,
        digest=specs.digest,
        edges=edges,
        external=external,
        is_fail_fast=spec.fail_fast,
        finally_from=sections[1].first if sections[1:] else None,
    )


def _check_env(spec: WorkflowSpec, tasks: Sequence[Task], *, has_caller: bool) -> None:
    """Check the variables of a workflow, which each of its tasks gets."""
    if not spec.env:
        return
    if not has_caller:
        _check_callers_variables(spec.env, "spec")
    size = sum(len(one.name) + len(one.value) for one in spec.env) * len(tasks)
    if size > MAX_ENV_CHARACTERS:
        raise errors.SpecError(
            f"the variables have {size:,} characters, those of {len(tasks):,} tasks counted; at"
            f" most {MAX_ENV_CHARACTERS:,} are allowed: put large values into a file",
            *("spec", "env"),
        )
    for at, task in enumerate(tasks):
        if len(task.env) > MAX_ENV_VARS:
            raise errors.SpecError(
                f"task {task.name!r} has {len(task.env):,} variables, those of the workflow"
                f" counted; at most {MAX_ENV_VARS:,} are allowed",
                *("spec", *spec.path_of(at), "env"),
            )


def _check_command(spec: CommandSpec, *path: str | int, has_caller: bool) -> None:
    if spec.workdir is not None and not spec.workdir.startswith("/"):
        raise errors.SpecError(
            f"the workdir {formats.quoted(spec.workdir)} is relative; only `workron run` resolves"
            " it, from the folder of the file: write an absolute path",
            *(*path, "workdir"),
        )
    if not has_caller:
        _check_callers_variables(spec.env, *path)


def _check_callers_variables(env: Sequence[EnvVar], *path: str | int) -> None:
    for at, variable in enumerate(env):
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
    """Position in its field of the manifest."""
    spec: int
    offset: int
    commands: range
    is_array: bool


@dataclass(frozen=True, slots=True)
class _Section:
    """The tasks of one field, `tasks` or `finally`, in topological order."""

    field: str
    first: int
    """Offset of its first job."""
    places: Mapping[str, _Place]
    is_last: bool
    """Whether it is `finally`."""


def _sections(spec: WorkflowSpec, tasks: Sequence[Task]) -> list[_Section]:
    count = len(spec.tasks)
    _check_edge_count("tasks", tasks[:count])
    if not spec.finally_:
        return [_section("tasks", tasks, 1, 1)]
    last = tasks[count:]
    _check_edge_count("finally", last)
    _check_independence(tasks[:count], last)
    _check_deadlines(last)
    first = _section("tasks", tasks[:count], TASKS_OFFSET + 1, 1)
    end = max(place.commands.stop for place in first.places.values())
    return [first, _section("finally", last, end, count + 1)]


def _section(field: str, tasks: Sequence[Task], offset: int, spec: int) -> _Section:
    """Place the tasks from this offset on; their specs have the numbers from `spec` on."""
    try:
        order = graph.check([task.name for task in tasks], list(map(_upstream_tasks, tasks)), field)
    except errors.GraphError as error:
        raise errors.GraphError(str(error), *_written_path(tasks, error.path)) from None
    places: dict[str, _Place] = {}
    section = _Section(field, offset, places, is_last=field == "finally")
    for at in order:
        task = tasks[at]
        is_array = task.is_array
        first = offset + is_array
        last = first + (task.size if is_array else 1)
        places[task.name] = _Place(task, at, spec + at, offset, range(first, last), is_array)
        offset = last
    return section


def _upstream_tasks(task: Task) -> list[str]:
    return [up.name for up in task.depends_on if up.kind is None]


def _written_path(tasks: Sequence[Task], path: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the path in the manifest of what `graph` has found among the upstream tasks."""
    match path:
        case (field, at, name, which):
            ups = enumerate(tasks[at].depends_on)
            return field, at, name, [number for number, up in ups if up.kind is None][which]
        case _:
            return path


def _external(identity: Identity, section: _Section) -> Iterator[ExternalDependency]:
    """Return the dependencies on other runs, one for each element of an array."""
    for place in section.places.values():
        for which, up in enumerate(place.task.depends_on):
            if up.kind is not None:
                _check_external(identity, section, place, which)
                for command in place.commands:
                    yield ExternalDependency(command, up.kind, up.name, up.when)


def _check_external(identity: Identity, section: _Section, place: _Place, which: int) -> None:
    task, up = place.task, place.task.depends_on[which]
    path = section.field, place.at, "dependsOn", which
    if section.is_last:
        raise errors.GraphError(
            f"task {task.name!r} of `finally` depends on {up.kind} {up.name!r}; tasks of `finally`"
            " start when all other tasks have ended: remove that dependency",
            *path,
        )
    if up.each:
        raise errors.GraphError(
            f"task {task.name!r} depends on each of {up.kind} {up.name!r}, which is not an array of"
            " this workflow; remove `each`",
            *(*path, "each"),
        )
    if (up.kind, up.name) == (identity.kind, identity.name):
        raise errors.GraphError(
            f"task {task.name!r} depends on its own workflow; remove that dependency", *path
        )
    if task.size > MAX_EXTERNAL:
        raise errors.GraphError(
            f"task {task.name!r} has {task.size:,} elements; at most {MAX_EXTERNAL:,} can depend on"
            f" {up.kind} {up.name!r}: let it depend on a task that depends on that",
            *path,
        )
    if any((up.kind, up.name) == (one.kind, one.name) for one in task.depends_on[:which]):
        raise errors.GraphError(
            f"task {task.name!r} names {up.kind} {up.name!r} twice under dependsOn; name each"
            " upstream once",
            *path,
        )


def _check_independence(tasks: Sequence[Task], last: Sequence[Task]) -> None:
    """Refuse names and dependencies that `tasks` and `finally` share."""
    names = {task.name for task in tasks}
    last_names = {task.name for task in last}
    for at, task in enumerate(last):
        if task.name in names:
            raise errors.GraphError(
                f"a task and a task of `finally` are named {task.name!r}; give one another name",
                *("finally", at, "name"),
            )
    for field, some, others in (("tasks", tasks, last_names), ("finally", last, names)):
        for at, task in enumerate(some):
            for which, up in enumerate(task.depends_on):
                if up.kind is None and up.name in others:
                    raise _mixed(field, at, which, task.name, up.name)


def _check_deadlines(last: Sequence[Task]) -> None:
    for at, task in enumerate(last):
        if task.deadline is not None:
            raise errors.GraphError(
                f"task {task.name!r} of `finally` has a deadline, which counts from the submission;"
                " use timeout",
                *("finally", at, "deadline"),
            )


def _mixed(field: str, at: int, which: int, name: str, upstream: str) -> errors.GraphError:
    who = f"{name!r} of `finally`" if field == "finally" else f"{name!r}"
    other = f"task {upstream!r}" if field == "finally" else f"{upstream!r} of `finally`"
    return errors.GraphError(
        f"task {who} depends on {other}; tasks of `finally` start when all other tasks have ended:"
        " remove that dependency",
        *(field, at, "dependsOn", which),
    )


def _check_edge_count(field: str, tasks: Sequence[Task]) -> None:
    total = sum(_edge_count(task) for task in tasks if task.depends_on)
    if total <= MAX_EDGES:
        return
    widest = max(tasks, key=_edge_count)
    raise errors.GraphError(
        f"its dependencies are {total:,} edges; at most {MAX_EDGES:,} are allowed."
        f" {widest.name!r} has the most, {widest.size:,} x {len(widest.depends_on):,}:"
        " let it depend on one task that depends on the others",
        *(field, tasks.index(widest), "dependsOn"),
    )


def _edge_count(task: Task) -> int:
    return task.size * len(task.depends_on)


def _edges(section: _Section) -> Iterator[Edge]:
    for place in section.places.values():
        upstreams = place.task.depends_on
        for which, up in enumerate(upstreams):
            if up.kind is None:
                sources = _sources(section, place, up, which)
                yield from map(Edge, sources, place.commands, itertools.repeat(up.when))
        if section.is_last and not upstreams:
            for command in place.commands:
                yield Edge(TASKS_OFFSET, command, Condition.FINISHED)


def _sources(section: _Section, place: _Place, up: TaskDependency, which: int) -> Iterable[int]:
    upstream = section.places[up.name]
    if not up.each:
        return itertools.repeat(upstream.offset)
    task = place.task
    if not (task.is_array and upstream.task.is_array and task.size == upstream.task.size):
        raise errors.GraphError(
            f"task {task.name!r} depends on each of {up.name!r}, which pairs two arrays of one"
            f" length; but {_extent(task)} and {_extent(upstream.task)}",
            *(section.field, place.at, "dependsOn", which, "each"),
        )
    return upstream.commands


def _extent(task: Task) -> str:
    if not task.is_array:
        return f"{task.name!r} is not an array"
    return f"{task.name!r} has {task.size:,} element{'s' if task.size > 1 else ''}"


def _nodes(name: str, sections: Sequence[_Section]) -> list[PlannedJob]:
    tasks, *last = sections
    if not last:
        nodes = [PlannedJob(Kind.WORKFLOW, name, 0, upstreams=len(tasks.places))]
        nodes += _section_nodes(tasks, 0)
        return nodes
    [final] = last
    group = PlannedJob(Kind.TASKS, TASKS_NAME, 0, None, None, 0, Condition.TASK, len(tasks.places))
    nodes = [PlannedJob(Kind.WORKFLOW, name, 0, upstreams=1 + len(final.places)), group]
    nodes += _section_nodes(tasks, TASKS_OFFSET)
    nodes += _section_nodes(final, 0)
    return nodes


def _section_nodes(section: _Section, group: int) -> list[PlannedJob]:
    # A first task of `finally` waits for the group of the tasks.
    least = int(section.is_last)
    job, plain, allowed = Kind.JOB, Condition.TASK, Condition.ALLOWED_TASK
    nodes: list[PlannedJob] = []
    for place in section.places.values():
        task, spec = place.task, place.spec
        ups = len(task.depends_on)
        condition = allowed if task.allow_failure else plain
        if place.is_array:
            nodes += _array(place, group, condition, ups or least)
        else:
            nodes.append(
                PlannedJob(
                    job, task.name, spec, None, None, group, condition, ups or least, ups > 0
                )
            )
    return nodes


def _array(place: _Place, group: int, condition: Condition, waits_for: int) -> Iterator[PlannedJob]:
    task, name, spec = place.task, place.task.name, place.spec
    group_id, member, has_inputs = place.offset, Condition.MEMBER, bool(task.depends_on)
    yield PlannedJob(Kind.ARRAY, name, spec, None, None, group, condition, task.size)
    for index, item in enumerate(task.items or itertools.repeat(None, task.size)):
        yield PlannedJob(Kind.JOB, name, spec, index, item, group_id, member, waits_for, has_inputs)


def _terms(
    spec: CommandSpec, start_after: datetime | None = None, max_failures: int | None = None
) -> SchedulingTerms:
    return _cached_terms(
        spec.pool, spec.max_worker_losses, start_after, spec.deadline, spec.overlap, max_failures
    )


def _task_terms(task: Task) -> SchedulingTerms:
    allowed = None if task.max_failures is None else task.allowed_failures
    return _terms(task, task.start_after, allowed)


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

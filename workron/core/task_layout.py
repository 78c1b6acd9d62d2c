"""The layout of a workflow's jobs in a plan: their offsets, edges and dependencies on other runs.

The tasks follow in topological order, an array as its group and then its elements. A task waits
for another task as a whole: for the end of its command, or of the group of an array, which ends
when all its elements have. So only the elements of the downstream task need an edge each; with
`each`, every pair of elements has one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, graph
from workron.core.plan import TASKS_OFFSET, Edge, ExternalDependency
from workron.core.verdict import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from workron.core.model.workflow import Task, TaskDependency, WorkflowSpec
    from workron.core.plan import Identity


MAX_EDGES: Final = 2_000_000
"""Edges of one workflow: each element of an array has one for each task that it waits for."""
MAX_EXTERNAL: Final = 10_000
"""Dependencies of one workflow on other runs, each element counted: each is looked up by name."""


@dataclass(slots=True)
class Place:
    """The place of a task in a plan; `offset` is that of its command or group."""

    task: Task
    at: int
    """Position in its field of the manifest."""
    spec: int
    offset: int
    commands: range
    is_array: bool


@dataclass(frozen=True, slots=True)
class Section:
    """The tasks of one field, `tasks` or `finally`, in topological order."""

    field: str
    first: int
    """Offset of its first job."""
    places: Mapping[str, Place]
    is_last: bool
    """Whether it is `finally`."""


def place_tasks(spec: WorkflowSpec, tasks: Sequence[Task]) -> list[Section]:
    """Place all tasks; GraphError if they do not form a DAG, or depend on what they cannot."""
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


def _section(field: str, tasks: Sequence[Task], offset: int, spec: int) -> Section:
    """Place the tasks from this offset on; their specs have the numbers from `spec` on."""
    try:
        order = graph.check([task.name for task in tasks], list(map(_upstream_tasks, tasks)), field)
    except errors.GraphError as error:
        raise errors.GraphError(str(error), *_written_path(tasks, error.path)) from None
    places: dict[str, Place] = {}
    section = Section(field, offset, places, is_last=field == "finally")
    for at in order:
        task = tasks[at]
        is_array = task.is_array
        first = offset + is_array
        last = first + (task.size if is_array else 1)
        places[task.name] = Place(task, at, spec + at, offset, range(first, last), is_array)
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


def external_dependencies(
    identity: Identity, sections: Sequence[Section]
) -> Iterator[ExternalDependency]:
    """Return the dependencies on other runs, one for each element of an array."""
    total = 0
    for section, place in ((one, place) for one in sections for place in one.places.values()):
        for which, up in enumerate(place.task.depends_on):
            if up.kind is not None:
                _check_external(identity, section, place, which)
                total += place.task.size
                if total > MAX_EXTERNAL:
                    raise _too_many_external(section, place, which)
                for command in place.commands:
                    yield ExternalDependency(command, up.kind, up.name, up.when)


def _too_many_external(section: Section, place: Place, which: int) -> errors.GraphError:
    return errors.GraphError(
        f"its tasks depend on other Jobs and Workflows more than {MAX_EXTERNAL:,} times, each"
        f" element of an array counted, the last one {place.task.name!r}: let them depend on one"
        " task that does",
        *(section.field, place.at, "dependsOn", which),
    )


def _check_external(identity: Identity, section: Section, place: Place, which: int) -> None:
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


def edges(section: Section) -> Iterator[Edge]:
    """Return the edges of one section, and of the first tasks of `finally` from all tasks."""
    for place in section.places.values():
        upstreams = place.task.depends_on
        for which, up in enumerate(upstreams):
            if up.kind is None:
                sources = _sources(section, place, up, which)
                yield from map(Edge, sources, place.commands, itertools.repeat(up.when))
        if section.is_last and not upstreams:
            for command in place.commands:
                yield Edge(TASKS_OFFSET, command, Condition.FINISHED)


def _sources(section: Section, place: Place, up: TaskDependency, which: int) -> Iterable[int]:
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

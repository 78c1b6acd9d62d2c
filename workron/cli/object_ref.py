"""References to jobs and workflows: `[KIND/][NAMESPACE/]NAME[/TASK[/INDEX]]`, or an id.

Slashes and not brackets, which shells take for patterns. `a/b` means task b of a, or b in namespace
a: whichever exists, and the task if both do. `a.b` is the name of task b of a as an object, so it
means that task if no run has this name. A number may also be the id of a job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from workron.core import errors
from workron.core.ids import JobId
from workron.core.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from workron.store.api import ReadStore
    from workron.store.types import JobRow, RunRow


_KINDS: Final = {
    "job": Kind.JOB,
    "jobs": Kind.JOB,
    "wj": Kind.JOB,
    "workflow": Kind.WORKFLOW,
    "workflows": Kind.WORKFLOW,
    "wflow": Kind.WORKFLOW,
}
_MAX_LISTED: Final = 10
_MAX_ID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Reading:
    """One meaning of a reference."""

    namespace: str
    name: str
    task: str | None = None
    index: int | None = None
    is_dotted: bool = False
    """Whether the task was behind a dot, as in the name of an object."""


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A parsed reference, which may have more than one meaning."""

    text: str
    kind: Kind | None
    steps: Sequence[str]

    @property
    def id(self) -> JobId | None:
        """The id that it may be."""
        is_number = self.text.isascii() and self.text.isdecimal()
        return JobId(int(self.text)) if is_number and int(self.text) <= _MAX_ID else None

    def readings(self, namespace: str) -> Iterator[Reading]:
        """Yield the possible meanings, the preferred one first."""
        for steps in ([namespace, *self.steps], self.steps):
            match steps:
                case [scope, name]:
                    yield Reading(scope, name)
                    yield from _dotted(scope, name)
                case [scope, name, task]:
                    yield Reading(scope, name, task)
                case [scope, name, task, index] if index.isascii() and index.isdecimal():
                    yield Reading(scope, name, task, int(index))


def _dotted(namespace: str, text: str) -> Iterator[Reading]:
    """Yield the meanings of the name of an object: `flow.task`, `flow.task.3`."""
    name, _, last = text.rpartition(".")
    run, _, task = name.rpartition(".")
    if run and last.isascii() and last.isdecimal():
        yield Reading(namespace, run, task, int(last), is_dotted=True)
    if name:
        yield Reading(namespace, name, last, is_dotted=True)


def parse(text: str) -> ObjectReference:
    """Parse a reference; InputError shows the format."""
    steps = text.split("/")
    kind = _KINDS.get(steps[0].lower()) if len(steps) > 1 else None
    wanted = ObjectReference(text, kind, steps if kind is None else steps[1:])
    if not all(wanted.steps) or not any(wanted.readings("")):
        raise errors.InputError(
            f"{text!r} is not of the form [KIND/][NAMESPACE/]NAME[/TASK[/INDEX]],"
            " like etl, job/hello, etl/transform/3 or team/etl, or an id"
        )
    return wanted


RunArgument = Annotated[
    ObjectReference | None,
    typer.Argument(
        parser=parse,
        metavar="NAME",
        help="A job or workflow, with all its jobs; default: all of the namespace.",
    ),
]
RunArguments = Annotated[
    list[ObjectReference],
    typer.Argument(
        parser=parse,
        metavar="NAME...",
        help="Names or ids of jobs and workflows: etl, workflow/etl, team/etl.",
    ),
]
JobArgument = Annotated[
    ObjectReference,
    typer.Argument(
        parser=parse,
        metavar="NAME",
        help="Name or id of a job, a workflow, a task or an array element: hello, etl,"
        " etl/load, etl/transform/3, team/etl/load.",
    ),
]


async def find_run(reader: ReadStore, namespace: str, wanted: ObjectReference) -> RunRow:
    """Look up a whole Job or Workflow; InputError if the reference names a part of one."""
    found = await _find(reader, namespace, wanted)
    run = found.run
    if found.is_part:
        raise errors.InputError(
            f"{wanted.text!r} is a part of {run.kind} {run.name!r}; this command needs the whole"
            f" {run.kind}: {run.name}"
        )
    return run


async def find_job(
    reader: ReadStore, namespace: str, wanted: ObjectReference
) -> tuple[RunRow, JobRow]:
    """Look up a run, a task or an element; return its row and the run that it belongs to."""
    found = await _find(reader, namespace, wanted)
    run, task = found.run, found.task
    job: JobId | None = found.job or run.run
    if task is not None:
        job = await reader.find_job(run.run, task, found.index)
        if job is None:
            tasks = (await reader.get_spec(run.run) or {}).get("tasks", ())
            raise _no_such_part(run, task, found.index, tasks)
    assert job is not None
    [row] = await reader.get_jobs([job])
    return run, row


@dataclass(frozen=True, slots=True)
class _Found:
    """A run, and which part of it a reference means, if it means one."""

    run: RunRow
    job: JobId | None = None
    task: str | None = None
    index: int | None = None

    @property
    def is_part(self) -> bool:
        return self.task is not None or self.job not in {None, self.run.run}


async def _find(reader: ReadStore, namespace: str, wanted: ObjectReference) -> _Found:
    """Look up a reference; NotFoundError if none exists, InputError if it matches both kinds."""
    readings = list(wanted.readings(namespace))
    for reading in readings:
        if (run := await _find_reading(reader, reading, wanted)) is not None:
            return _Found(run, None, reading.task, reading.index)
    if wanted.id is not None and (run := await reader.get_run(wanted.id)) is not None:
        return _Found(run, wanted.id)
    what = wanted.kind or "Job or Workflow"
    missing = [
        f"no {what} {one.name!r} in namespace {one.namespace!r}"
        for one in readings
        if not one.is_dotted
    ]
    raise errors.NotFoundError(
        f"{'; '.join(missing)}; names have the form [KIND/][NAMESPACE/]NAME, where KIND is job or"
        " workflow; `workron get -n NAMESPACE` lists a namespace"
    )


async def _find_reading(
    reader: ReadStore, reading: Reading, wanted: ObjectReference
) -> RunRow | None:
    kinds = [wanted.kind] if wanted.kind else [Kind.JOB, Kind.WORKFLOW]
    if reading.is_dotted:
        # As an object, a task is a Job.
        kinds = [] if wanted.kind is Kind.WORKFLOW else [Kind.WORKFLOW]
    found = [await reader.find_run(reading.namespace, kind, reading.name) for kind in kinds]
    runs = [run for run in found if run is not None]
    if len(runs) > 1 and reading.task is not None:
        # A Job has no parts.
        runs = [run for run in runs if run.kind is Kind.WORKFLOW]
    if len(runs) > 1:
        raise errors.InputError(
            f"{reading.name!r} is both a Job and a Workflow: write job/{wanted.text} or"
            f" workflow/{wanted.text}"
        )
    return runs[0] if runs else None


def _no_such_part(
    run: RunRow, task: str, index: int | None, tasks: Sequence[Mapping[str, Any]]
) -> errors.NotFoundError:
    part = task if index is None else f"{task}/{index}"
    names = [one["name"] for one in tasks]
    if not names:
        there = ": it is a single job"
    elif task not in names:
        more = ", …" * (len(names) > _MAX_LISTED)
        there = f"; its tasks: {', '.join(names[:_MAX_LISTED])}{more}"
    else:
        spec = tasks[names.index(task)]
        size = spec.get("count") or len(spec.get("items", ()))
        there = f": {task} has elements 0 to {size - 1}" if size else f": {task} is a single job"
    return errors.NotFoundError(f"{run.kind} {run.name!r} has no {part!r}{there}")

"""References to jobs and workflows: `[KIND/][NAMESPACE/]NAME[/TASK[/INDEX]]`.

Slashes and not brackets, which shells take for patterns. `a/b` means task b of a, or b in namespace
a: whichever exists, and the task if both do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors
from workron.core.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from workron.core.ids import JobId
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
_MAX_PARTS: Final = 3
_MAX_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A parsed reference, which may have more than one meaning."""

    text: str
    kind: Kind | None
    steps: Sequence[str]

    def readings(self, namespace: str) -> Iterator[Reading]:
        """Yield the possible meanings, the preferred one first."""
        if _is_path(self.steps):
            yield Reading(namespace, *_path(self.steps))
        if len(self.steps) > 1 and _is_path(self.steps[1:]):
            yield Reading(self.steps[0], *_path(self.steps[1:]))


@dataclass(frozen=True, slots=True)
class Reading:
    """One meaning of a reference."""

    namespace: str
    name: str
    task: str | None
    index: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """A run, and the task and index within it."""

    root: RunRow
    task: str | None
    index: int | None


def parse(text: str) -> ObjectReference:
    """Parse a reference; InputError shows the format."""
    steps = text.split("/")
    kind = _KINDS.get(steps[0].lower()) if len(steps) > 1 else None
    wanted = ObjectReference(text, kind, tuple(steps if kind is None else steps[1:]))
    if not all(wanted.steps) or not any(wanted.readings("")):
        raise errors.InputError(
            f"{text!r} is not of the form [KIND/][NAMESPACE/]NAME[/TASK[/INDEX]],"
            " like etl, job/hello, etl/transform/3 or team/etl"
        )
    return wanted


async def find(reader: ReadStore, namespace: str, wanted: ObjectReference) -> Found:
    """Look up a reference; NotFoundError if none exists, InputError if it matches both kinds."""
    for one in wanted.readings(namespace):
        if (root := await _root(reader, one, wanted)) is not None:
            return Found(root, one.task, one.index)
    raise errors.NotFoundError("; ".join(_not_found(namespace, wanted)))


async def find_root(reader: ReadStore, namespace: str, wanted: ObjectReference) -> RunRow:
    """Look up a whole Job or Workflow; InputError if the reference names a part of one."""
    found = await find(reader, namespace, wanted)
    if found.task is not None:
        raise errors.InputError(
            f"{wanted.text!r} is a part of {found.root.kind} {found.root.name!r}; this command"
            f" needs the whole {found.root.kind}: {found.root.name}"
        )
    return found.root


async def pick(reader: ReadStore, found: Found) -> JobRow:
    """Return the row of a run, a task or an element."""
    root = found.root
    job: JobId | None = root.run
    if found.task is not None:
        job = await reader.find_job(root.run, found.task, found.index)
    if job is None:
        raise await _no_such_part(reader, found)
    [row] = await reader.get_jobs([job])
    return row


async def _root(reader: ReadStore, one: Reading, wanted: ObjectReference) -> RunRow | None:
    kinds = [wanted.kind] if wanted.kind else [Kind.JOB, Kind.WORKFLOW]
    found = [await reader.find_run(one.namespace, kind, one.name) for kind in kinds]
    roots = [root for root in found if root is not None]
    if len(roots) > 1 and one.task is not None:
        # A Job has no parts.
        roots = [root for root in roots if root.kind is Kind.WORKFLOW]
    if len(roots) > 1:
        raise errors.InputError(
            f"{one.name!r} is both a Job and a Workflow: write job/{wanted.text} or"
            f" workflow/{wanted.text}"
        )
    return roots[0] if roots else None


def _not_found(namespace: str, wanted: ObjectReference) -> Iterator[str]:
    what = wanted.kind or "Job or Workflow"
    for one in wanted.readings(namespace):
        yield f"no {what} {one.name!r} in namespace {one.namespace!r}"
    yield (
        "names have the form [KIND/][NAMESPACE/]NAME, where KIND is job or workflow;"
        " `workron get -n NAMESPACE` lists a namespace"
    )


async def _no_such_part(reader: ReadStore, found: Found) -> errors.NotFoundError:
    root, task = found.root, found.task
    tasks = (await reader.get_spec(root.run) or {}).get("tasks", ())
    part = task if found.index is None else f"{task}/{found.index}"
    there = _existing_parts(tasks, task)
    return errors.NotFoundError(f"{root.kind} {root.name!r} has no {part!r}{there}")


def _is_path(steps: Sequence[str]) -> bool:
    index = steps[2] if len(steps) == _MAX_PARTS else "0"
    return len(steps) <= _MAX_PARTS and index.isascii() and index.isdecimal()


def _path(steps: Sequence[str]) -> tuple[str, str | None, int | None]:
    name, task, index = (*steps, None, None)[:_MAX_PARTS]
    assert name is not None
    return name, task, None if index is None else int(index)


def _existing_parts(tasks: Sequence[Mapping[str, Any]], task: str | None) -> str:
    names = [one["name"] for one in tasks]
    if not names:
        return ": it is a single job"
    if task not in names:
        return f"; its tasks: {', '.join(names[:_MAX_LISTED])}" + ", …" * (len(names) > _MAX_LISTED)
    spec = tasks[names.index(task)]
    size = spec.get("count") or len(spec.get("items", ()))
    return f": {task} has elements 0 to {size - 1}" if size else f": {task} is a single job"

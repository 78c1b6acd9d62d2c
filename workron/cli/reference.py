"""How a person points at something in a store: `[KIND/]NAME[/TASK[/INDEX]]`.

Slashes rather than brackets, which shells would take for patterns. Used by every command that
takes a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors
from workron.core.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.core.ids import JobId
    from workron.store.protocol import JobRow, ReaderDoor, RootRow

_KINDS: Final = {
    "job": Kind.JOB,
    "jobs": Kind.JOB,
    "wj": Kind.JOB,
    "workflow": Kind.WORKFLOW,
    "workflows": Kind.WORKFLOW,
    "wflow": Kind.WORKFLOW,
}
_MOST_STEPS: Final = 3
_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class Reference:
    """What somebody pointed at."""

    text: str
    kind: Kind | None
    name: str
    task: str | None = None
    index: int | None = None


def parse(text: str) -> Reference:
    """Read a reference; InputError says what one looks like."""
    steps = text.split("/")
    kind = _KINDS.get(steps[0].lower()) if len(steps) > 1 else None
    rest = steps if kind is None else steps[1:]
    index = rest[2] if len(rest) == _MOST_STEPS else None
    is_number = index is None or (index.isascii() and index.isdecimal())
    if not all(rest) or len(rest) > _MOST_STEPS or not is_number:
        raise errors.InputError(
            f"{text!r} is not [KIND/]NAME[/TASK[/INDEX]], like etl, job/hello or etl/transform/3"
        )
    task = rest[1] if len(rest) > 1 else None
    return Reference(text, kind, rest[0], task, None if index is None else int(index))


def parse_root(text: str) -> Reference:
    """Read a reference to a whole Job or Workflow."""
    wanted = parse(text)
    if wanted.task is not None:
        raise errors.InputError(
            f"{text!r} is neither job/NAME nor workflow/NAME, and there are no other kinds here;"
            f" of a workflow with tasks this command takes it whole: {wanted.name}"
        )
    return wanted


async def find(reader: ReaderDoor, namespace: str, wanted: Reference) -> RootRow:
    """Find the root; NotFoundError if there is none, InputError if it could be either kind."""
    kinds = [wanted.kind] if wanted.kind else [Kind.JOB, Kind.WORKFLOW]
    found = [await reader.find(namespace, kind, wanted.name) for kind in kinds]
    roots = [root for root in found if root is not None]
    if not roots:
        what = wanted.kind or "Job or Workflow"
        raise errors.NotFoundError(
            f"no {what} {wanted.name!r} in namespace {namespace!r}; `workron get` lists all"
        )
    if len(roots) > 1:
        raise errors.InputError(
            f"{wanted.name!r} is a Job and a Workflow: write job/{wanted.text} or"
            f" workflow/{wanted.text}"
        )
    return roots[0]


async def pick(reader: ReaderDoor, root: RootRow, wanted: Reference) -> JobRow:
    """Find the one row that is meant: the root's, a task's, or an element's."""
    job: JobId | None = root.root
    if wanted.task is not None:
        job = await reader.member(root.root, wanted.task, wanted.index)
    if job is None:
        raise await _not_there(reader, root, wanted)
    [row] = await reader.standing([job])
    return row


async def _not_there(reader: ReaderDoor, root: RootRow, wanted: Reference) -> errors.NotFoundError:
    tasks = (await reader.spec(root.root) or {}).get("tasks", ())
    return errors.NotFoundError(
        f"{root.kind} {root.name!r} has no {wanted.text!r}{_what_there_is(tasks, wanted.task)}"
    )


def _what_there_is(tasks: Sequence[Mapping[str, Any]], task: str | None) -> str:
    names = [one["name"] for one in tasks]
    if not names:
        return ": it is one command"
    if task not in names:
        return f"; its tasks: {', '.join(names[:_LISTED])}" + ", …" * (len(names) > _LISTED)
    spec = tasks[names.index(task)]
    size = spec.get("count") or len(spec.get("items", ()))
    return f": {task} has elements 0 to {size - 1}" if size else f": {task} is one command"

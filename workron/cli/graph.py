"""`workron graph`: draws the jobs of a file or of a stored run, and their dependencies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from workron.cli import gc_tuning, manifest_files, object_ref, options, system_clock
from workron.cli.stores import opened
from workron.core import drawing, errors
from workron.core.model.job import Job, JobSpec
from workron.core.model.workflow import Task, TaskDependency, Workflow, WorkflowSpec
from workron.core.plan import Kind
from workron.core.verdict import Condition
from workron.scheduling import submit


class DrawingForm(StrEnum):
    """Drawing of a graph."""

    TREE = "tree"
    MERMAID = "mermaid"


def graph(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|[KIND/][NAMESPACE/]NAME", help="A manifest file, or a name in the store."
        ),
    ],
    store: Annotated[str | None, options.store_option()] = None,
    namespace: options.Namespace = "default",
    form: Annotated[
        DrawingForm,
        typer.Option("--format", help="Drawing format.", **options.choice(DrawingForm)),
    ] = DrawingForm.TREE,
) -> None:
    """Draw the jobs of a file or of a stored run, and their dependencies."""
    if source == "-" or _exists(source):
        drawings = _from_file(source)
    elif store is None:
        raise errors.InputError(f"{source} is not a file, and there is no --store to look it up in")
    else:
        url = options.require_persistent_store(store)
        try:
            drawings = asyncio.run(_from_store(url, namespace, source))
        except errors.NotFoundError as error:
            raise errors.NotFoundError(f"{source} is not a file; {error}") from None
        except errors.InputError as error:
            raise errors.InputError(f"{source} is not a file; {error}") from None
    draw = drawing.tree if form is DrawingForm.TREE else drawing.mermaid
    typer.echo("\n\n".join(draw(boxes) for boxes in drawings))


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        # Too long for a path or with an invalid character; it may still be a name.
        return False


def _from_file(path: str) -> Sequence[Sequence[drawing.TaskBox]]:
    with gc_tuning.paused_collection():
        manifests = manifest_files.manifests([path])
        local = manifest_files.resolve_workdirs(manifests)
        submit.plan(local, system_clock.RNG, has_caller=True)
    resources = [manifest.resource for manifest in manifests]
    drawn = [_boxes(one.spec) for one in resources if isinstance(one, Workflow)]
    jobs = [one for one in resources if isinstance(one, Job)]
    if jobs:
        drawn.append([_box(job.metadata.name or "(unnamed)", job.spec) for job in jobs])
    return drawn


async def _from_store(url: str, namespace: str, name: str) -> Sequence[Sequence[drawing.TaskBox]]:
    wanted = object_ref.parse(name)
    async with opened(url) as store:
        run = await object_ref.find_run(store, namespace, wanted)
        spec = await store.get_spec(run.run)
    if run.kind is Kind.WORKFLOW:
        return [_boxes(WorkflowSpec.parse(spec))]
    return [[_box(run.name, JobSpec.parse(spec))]]


_FINALLY: Final = "(finally)"
"""The box above the tasks of `finally`. No task can have this name."""


def _boxes(spec: WorkflowSpec) -> Sequence[drawing.TaskBox]:
    boxes = [_task_box(task) for task in spec.tasks]
    if spec.finally_:
        boxes.append(drawing.TaskBox(_FINALLY))
        boxes += [_below_finally(_task_box(task)) for task in spec.finally_]
    return boxes


def _task_box(task: Task) -> drawing.TaskBox:
    upstreams = [(_upstream_name(up), up.when) for up in task.depends_on]
    return drawing.TaskBox(task.name, upstreams, task.size if task.is_array else None)


def _upstream_name(up: TaskDependency) -> str:
    return up.name if up.kind is None else f"{up.kind.lower()}/{up.name}"


def _below_finally(box: drawing.TaskBox) -> drawing.TaskBox:
    return box if box.upstreams else box._replace(upstreams=[(_FINALLY, Condition.SUCCEEDED)])


def _box(name: str, spec: JobSpec) -> drawing.TaskBox:
    return drawing.TaskBox(name, [(up.name, up.when) for up in spec.depends_on])

"""`workron graph`: draws the jobs of a file or of a stored run, and their dependencies."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workron.cli import gc_tuning, manifest_files, object_ref, options, system_clock
from workron.cli.stores import opened, run_command
from workron.core import drawing, errors
from workron.core.model.job import Job, JobSpec
from workron.core.model.workflow import Workflow, WorkflowSpec
from workron.core.plan import Kind
from workron.scheduling import submit

if TYPE_CHECKING:
    from collections.abc import Sequence


class Form(StrEnum):
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
    store: options.Store = None,
    namespace: options.Namespace = "default",
    form: Annotated[
        Form,
        typer.Option(
            "--format",
            parser=options.choice(Form),
            metavar="tree|mermaid",
            help="Drawing format.",
        ),
    ] = Form.TREE,
) -> None:
    """Draw the jobs of a file or of a stored run, and their dependencies."""
    if source == "-" or _exists(source):
        drawings = _from_file(source)
    elif store is None:
        raise errors.InputError(f"{source} is not a file, and there is no --store to look it up in")
    else:
        drawings = _look_up(options.require_persistent_store(store), namespace, source)
    draw = drawing.tree if form is Form.TREE else drawing.mermaid
    typer.echo("\n\n".join(draw(boxes) for boxes in drawings))


def _look_up(url: str, namespace: str, name: str) -> Sequence[Sequence[drawing.TaskBox]]:
    """Draw a run of the store; errors also say that the file does not exist."""
    try:
        return run_command(_from_store(url, namespace, object_ref.parse(name)))
    except errors.NotFoundError as error:
        raise errors.NotFoundError(f"{name} is not a file; {error}") from None
    except errors.InputError as error:
        raise errors.InputError(f"{name} is not a file; {error}") from None


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        # Too long for a path or with an invalid character; it may still be a name.
        return False


def _from_file(path: str) -> Sequence[Sequence[drawing.TaskBox]]:
    with gc_tuning.paused_collection():
        manifests = manifest_files.manifests([path])
        submit.plan(manifests, system_clock.RNG)
    resources = [manifest.resource for manifest in manifests]
    jobs = [one for one in resources if isinstance(one, Job)]
    flows = [one for one in resources if isinstance(one, Workflow)]
    drawn = [_boxes(flow.spec) for flow in flows]
    if jobs:
        drawn.append([_box(job.metadata.name or "(unnamed)", job.spec) for job in jobs])
    return drawn


async def _from_store(
    url: str, namespace: str, wanted: object_ref.ObjectReference
) -> Sequence[Sequence[drawing.TaskBox]]:
    async with opened(url) as store:
        root = await object_ref.find_root(store, namespace, wanted)
        spec = await store.get_spec(root.run)
    if root.kind is Kind.WORKFLOW:
        return [_boxes(WorkflowSpec.parse(spec))]
    return [[_box(root.name, JobSpec.parse(spec))]]


def _boxes(spec: WorkflowSpec) -> Sequence[drawing.TaskBox]:
    return [
        drawing.TaskBox(
            task.name,
            [(up.name, up.when) for up in task.depends_on],
            task.size if task.is_array else None,
        )
        for task in spec.tasks
    ]


def _box(name: str, spec: JobSpec) -> drawing.TaskBox:
    return drawing.TaskBox(name, [(up.name, up.when) for up in spec.depends_on])

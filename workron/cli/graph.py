"""`workron graph`: the shape of a DAG, of a file or of what is in a store."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workron.cli import collector, files, options, reference, system
from workron.cli.opening import carry_out, opened
from workron.core import drawing, errors
from workron.core.model.job import Job, JobSpec
from workron.core.model.workflow import Workflow, WorkflowSpec
from workron.core.plan import Kind
from workron.scheduling import submit

if TYPE_CHECKING:
    from collections.abc import Sequence


class Form(StrEnum):
    """How it is drawn."""

    TREE = "tree"
    MERMAID = "mermaid"


def graph(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|[KIND/][NAMESPACE/]NAME", help="A file, or a name in the store."
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
            help="How to draw it.",
        ),
    ] = Form.TREE,
) -> None:
    """Draw the jobs of a file, or of a run in a store, and what waits for what."""
    if source == "-" or _is_there(source):
        drawings = _from_file(source)
    elif store is None:
        raise errors.InputError(f"{source} is no file here, and no --store is named to look it up")
    else:
        drawings = _looked_up(options.lasting(store), namespace, source)
    draw = drawing.tree if form is Form.TREE else drawing.mermaid
    typer.echo("\n\n".join(draw(boxes) for boxes in drawings))


def _looked_up(url: str, namespace: str, name: str) -> Sequence[Sequence[drawing.Box]]:
    """Find it in the store; who meant a file reads that there is none either."""
    try:
        return carry_out(_from_store(url, namespace, reference.parse(name)))
    except errors.NotFoundError as error:
        raise errors.NotFoundError(f"{name} is no file here; {error}") from None
    except errors.InputError as error:
        raise errors.InputError(f"{name} is no file here; {error}") from None


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        # Too long for a path, or with a character that none has: it may still be a name.
        return False


def _from_file(path: str) -> Sequence[Sequence[drawing.Box]]:
    with collector.resting():
        manifests = files.manifests([path])
        submit.plan(manifests, system.RNG)
    resources = [manifest.resource for manifest in manifests]
    jobs = [one for one in resources if isinstance(one, Job)]
    flows = [one for one in resources if isinstance(one, Workflow)]
    drawn = [_boxes(flow.spec) for flow in flows]
    if jobs:
        drawn.append([_box(job.metadata.name or "(unnamed)", job.spec) for job in jobs])
    return drawn


async def _from_store(
    url: str, namespace: str, wanted: reference.Reference
) -> Sequence[Sequence[drawing.Box]]:
    async with opened(url) as store:
        root = await reference.find_root(store, namespace, wanted)
        spec = await store.spec(root.root)
    if root.kind is Kind.WORKFLOW:
        return [_boxes(WorkflowSpec.parse(spec))]
    return [[_box(root.name, JobSpec.parse(spec))]]


def _boxes(spec: WorkflowSpec) -> Sequence[drawing.Box]:
    return [
        drawing.Box(
            task.name,
            [(up.name, up.when) for up in task.depends_on],
            task.size if task.is_array else None,
        )
        for task in spec.tasks
    ]


def _box(name: str, spec: JobSpec) -> drawing.Box:
    return drawing.Box(name, [(up.name, up.when) for up in spec.depends_on])

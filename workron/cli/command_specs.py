"""The commands of a manifest: the spec of a Job, and each task of a Workflow."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from workron.core.model.job import Job
from workron.core.model.workerpool import WorkerPool
from workron.core.model.workflow import Workflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from workron.core.manifest.load import Manifest
    from workron.core.manifest.problems import Path
    from workron.core.model.job import EnvVar


def environments(manifest: Manifest) -> Iterator[tuple[Path, Sequence[EnvVar]]]:
    """Return the variables of a Job, or of a Workflow and its tasks, each with their path."""
    resource = manifest.resource
    if not isinstance(resource, WorkerPool):
        yield ("spec", "env"), resource.spec.env
    if isinstance(resource, Workflow):
        for at, task in enumerate(resource.spec.all_tasks):
            yield ("spec", *resource.spec.path_of(at), "env"), task.env


def replaced(manifest: Manifest, change: Callable[[Any, Manifest], Any]) -> Manifest:
    """Return the manifest with each command changed."""
    resource = manifest.resource
    if isinstance(resource, Job):
        update: dict[str, Any] = {"spec": change(resource.spec, manifest)}
    elif isinstance(resource, Workflow):
        spec = resource.spec
        fields = {"tasks": spec.tasks} | ({"finally_": spec.finally_} if spec.finally_ else {})
        changed = {
            name: tuple(change(task, manifest) for task in tasks) for name, tasks in fields.items()
        }
        update = {"spec": spec.model_copy(update=changed)}
    else:
        return manifest
    return dataclasses.replace(manifest, resource=resource.model_copy(update=update))

"""From a Job or Workflow to the flat plan that is stored.

The run has offset 0, and `task_layout` places the jobs of its tasks behind it.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, formats, task_layout
from workron.core.jobspec import MAX_ENV_VARS, Overlap
from workron.core.plan import (
    TASKS_NAME,
    TASKS_OFFSET,
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
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from workron.core.model.job import CommandSpec, EnvVar, Job
    from workron.core.model.workflow import Task, Workflow, WorkflowSpec
    from workron.core.task_layout import Place, Section


MAX_ENV_CHARACTERS: Final = 64_000_000
"""Of the variables of a workflow in all its tasks: each task stores them."""

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
        sections = task_layout.place_tasks(spec, tasks)
        edges = [edge for section in sections for edge in task_layout.edges(section)]
        external = list(task_layout.external_dependencies(identity, sections))
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


def _nodes(name: str, sections: Sequence[Section]) -> list[PlannedJob]:
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


def _section_nodes(section: Section, group: int) -> list[PlannedJob]:
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


def _array(place: Place, group: int, condition: Condition, waits_for: int) -> Iterator[PlannedJob]:
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

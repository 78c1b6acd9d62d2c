"""Shows what is in the store in the shape of the custom resources: the same for every client.

Called by `get`, and for the names of files by `workron run --output-dir`. A job of a workflow is
shown as a Job named `workflow.task`, or `workflow.task.3` as an element of an array: names of tasks
have no dots, so that no two jobs of a namespace meet. Groups are shown by their members alone.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workron.core import printable, states
from workron.core.model import base
from workron.core.model.base import field_names
from workron.core.model.job import CommandSpec
from workron.core.model.meta import API_VERSION
from workron.core.model.status import (
    JobCounts,
    JobStatus,
    StatusCondition,
    TaskFailure,
    WorkflowStatus,
)
from workron.core.plan import Kind
from workron.core.printable import tail
from workron.core.states import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from workron.core.ids import JobId
    from workron.store.api import ReadStore
    from workron.store.types import JobRow, RunRow


WORKFLOW_LABEL: Final = "workron.dev/workflow"
TASK_LABEL: Final = "workron.dev/task"
INDEX_LABEL: Final = "workron.dev/index"

_TAIL_BYTES: Final = 1024
_FAILURES: Final = 10
_COMMAND_FIELDS: Final = field_names(CommandSpec)


def object_name(run: RunRow, row: JobRow) -> str:
    """Name a job as an object: unique in its namespace and kind."""
    if row.job == run.run:
        return run.name
    return f"{run.name}.{row.name}" + ("" if row.index is None else f".{row.index}")


def job_object(run: RunRow, row: JobRow, spec: Mapping[str, Any], output: bytes) -> dict[str, Any]:
    """Show one command."""
    is_root = row.job == run.run
    shown = spec if is_root else {k: v for k, v in spec.items() if k in _COMMAND_FIELDS}
    status = JobStatus(
        **_common(run, row),
        attempts=row.attempts,
        failures=row.failures,
        losses=row.losses,
        exit_code=row.exit_code,
        worker=row.worker,
        output_tail=tail(output, _TAIL_BYTES) or None,
    )
    metadata = _metadata(run) if is_root else _member_metadata(run, row)
    return _object(Kind.JOB, metadata, shown, status.as_manifest())


def workflow_object(run: RunRow, rows: Sequence[JobRow], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Show a workflow: its own row comes first among `rows`."""
    commands = [row for row in rows if row.kind is Kind.JOB]
    failed = [row for row in commands if row.state is State.FAILED]
    status = WorkflowStatus(
        **_common(run, rows[0]),
        jobs=_counts(commands),
        first_failures=tuple(_failure(row) for row in failed[:_FAILURES]),
    )
    return _object(Kind.WORKFLOW, _metadata(run), spec, status.as_manifest())


def _object(
    kind: Kind, metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": str(kind),
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _metadata(run: RunRow) -> dict[str, Any]:
    return {
        "name": run.name,
        "namespace": run.namespace,
        "uid": str(run.uid),
        "creationTimestamp": base.format_timestamp(run.submitted_at),
        **{name: notes for name, notes in run.metadata.items() if notes},
    }


def _member_metadata(run: RunRow, row: JobRow) -> dict[str, Any]:
    name = object_name(run, row)
    labels = {WORKFLOW_LABEL: run.name, TASK_LABEL: row.name}
    if row.index is not None:
        labels[INDEX_LABEL] = str(row.index)
    return {
        "name": name,
        "namespace": run.namespace,
        # As lasting as the workflow's, and drawn from it, since the store keeps none for members.
        "uid": str(uuid.uuid5(run.uid, name)),
        "creationTimestamp": base.format_timestamp(run.submitted_at),
        "labels": labels,
    }


def _common(run: RunRow, row: JobRow) -> dict[str, Any]:
    return {
        "phase": row.state,
        "reason": row.reason and str(row.reason),
        "message": row.message,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "conditions": _conditions(row, row.finished_at or row.started_at or run.submitted_at),
    }


def _conditions(row: JobRow, since: datetime) -> tuple[StatusCondition, ...]:
    if row.state is State.SUCCEEDED:
        types: tuple[str, ...] = ("Complete",)
    else:
        types = ("Failed", "Stalled") if row.state in states.TERMINAL_STATES else ("Reconciling",)
    return tuple(
        StatusCondition(
            type=one,
            status="True",
            reason=str(row.reason or row.state),
            message=row.message or "",
            last_transition_time=since,
        )
        for one in types
    )


def _counts(commands: Sequence[JobRow]) -> JobCounts:
    counts = Counter(row.state.lower() for row in commands)
    done = sum(row.state in states.TERMINAL_STATES for row in commands)
    return JobCounts(total=len(commands), done=done, **counts)


def _failure(row: JobRow) -> TaskFailure:
    return TaskFailure(
        name=row.name,
        index=row.index,
        reason=row.reason and str(row.reason),
        message=row.message,
        exit_code=row.exit_code,
    )


_AT_ONCE: Final = 100


class RunTime(NamedTuple):
    """When something began, and how many seconds it took."""

    began: datetime | None
    seconds: float | None


def has_run_time(row: JobRow) -> bool:
    """Whether a row tells by itself when what it shows began."""
    return row.kind is not Kind.JOB or row.attempts <= 1


def run_time(row: JobRow) -> RunTime:
    """Give the time from the first start to the end: no attempt took longer."""
    if row.started_at is None or row.finished_at is None:
        return RunTime(row.started_at, None)
    return RunTime(row.started_at, max(0.0, (row.finished_at - row.started_at).total_seconds()))


async def last_run_time(reader: ReadStore, row: JobRow) -> RunTime:
    """Give the time of the attempt with which a job ended, or of a group from start to end."""
    if has_run_time(row) or row.state not in states.TERMINAL_STATES:
        return run_time(row)
    attempts = await reader.list_attempts(row.job)
    if not attempts:
        return run_time(row)
    began = attempts[-1].started_at
    return RunTime(began, max(0.0, (attempts[-1].finished_at - began).total_seconds()))


async def run_times(reader: ReadStore, rows: Sequence[JobRow]) -> Mapping[JobId, RunTime]:
    """Give the times of many, some asked for at once."""
    spans: dict[JobId, RunTime] = {}
    for at in range(0, len(rows), _AT_ONCE):
        some = rows[at : at + _AT_ONCE]
        found = await asyncio.gather(*(last_run_time(reader, row) for row in some))
        spans |= {row.job: span for row, span in zip(some, found, strict=True)}
    return spans


_GET_AT_ONCE: Final = 100
"""So many outputs are asked for together: one by one, nearly all of the time is the way there."""


async def run_objects(reader: ReadStore, run: RunRow) -> list[dict[str, Any]]:
    """Give the objects of one run, in the order in which they were submitted."""
    rows, specs = await reader.list_jobs(run.run), await reader.list_specs(run.run)
    objects = []
    if run.kind is Kind.WORKFLOW:
        objects.append(workflow_object(run, rows, specs[run.run]))
    commands = [row for row in rows if row.kind is Kind.JOB]
    for at in range(0, len(commands), _GET_AT_ONCE):
        some = commands[at : at + _GET_AT_ONCE]
        outputs = await asyncio.gather(*(_output(reader, row) for row in some))
        objects += [
            job_object(run, row, specs[row.job], output)
            for row, output in zip(some, outputs, strict=True)
        ]
    return objects


async def _output(reader: ReadStore, row: JobRow) -> bytes:
    return await reader.read_output(row.job, last=printable.READ_BYTES) if row.attempts else b""

"""Shows what is in the store in the shape of the custom resources: the same for every client.

Called by `get`, and for the names of files by `workron run --output-dir`. A job of a workflow is
shown as a Job named `workflow.task`, or `workflow.task.3` as an element of an array: names of tasks
have no dots, so that no two jobs of a namespace meet. Groups are shown by their members alone.
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from workron.core import states
from workron.core.model import moment
from workron.core.model.command import CommandSpec
from workron.core.model.meta import API_VERSION
from workron.core.model.record import field_names
from workron.core.model.status import (
    JobCounts,
    JobStatus,
    StatusCondition,
    TaskFailure,
    WorkflowStatus,
)
from workron.core.plan import Kind
from workron.core.states import State
from workron.scheduling.tail import tail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from workron.store.protocol import JobRow, RootRow

WORKFLOW_LABEL: Final = "workron.dev/workflow"
TASK_LABEL: Final = "workron.dev/task"
INDEX_LABEL: Final = "workron.dev/index"

_TAIL_BYTES: Final = 1024
_FAILURES: Final = 10
_COMMAND_FIELDS: Final = field_names(CommandSpec)


def name_of(root: RootRow, row: JobRow) -> str:
    """Name a job as an object: unique in its namespace and kind."""
    if row.job == root.root:
        return root.name
    return f"{root.name}.{row.name}" + ("" if row.index is None else f".{row.index}")


def job(root: RootRow, row: JobRow, spec: Mapping[str, Any], output: bytes) -> dict[str, Any]:
    """Show one command."""
    is_root = row.job == root.root
    shown = spec if is_root else {k: v for k, v in spec.items() if k in _COMMAND_FIELDS}
    status = JobStatus(
        **_common(root, row),
        attempts=row.attempts,
        failures=row.failures,
        losses=row.losses,
        exit_code=row.exit_code,
        worker=row.worker,
        output_tail=tail(output, _TAIL_BYTES) or None,
    )
    metadata = _metadata(root) if is_root else _member_metadata(root, row)
    return _object(Kind.JOB, metadata, shown, status.as_manifest())


def workflow(root: RootRow, rows: Sequence[JobRow], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Show a workflow: its own row comes first among `rows`."""
    commands = [row for row in rows if row.kind is Kind.JOB]
    failed = [row for row in commands if row.state is State.FAILED]
    status = WorkflowStatus(
        **_common(root, rows[0]),
        jobs=_counts(commands),
        first_failures=tuple(_failure(row) for row in failed[:_FAILURES]),
    )
    return _object(Kind.WORKFLOW, _metadata(root), spec, status.as_manifest())


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


def _metadata(root: RootRow) -> dict[str, Any]:
    return {
        "name": root.name,
        "namespace": root.namespace,
        "uid": str(root.uid),
        "creationTimestamp": moment.render(root.submitted_at),
        **{name: notes for name, notes in root.metadata.items() if notes},
    }


def _member_metadata(root: RootRow, row: JobRow) -> dict[str, Any]:
    name = name_of(root, row)
    labels = {WORKFLOW_LABEL: root.name, TASK_LABEL: row.name}
    if row.index is not None:
        labels[INDEX_LABEL] = str(row.index)
    return {
        "name": name,
        "namespace": root.namespace,
        # As lasting as the workflow's, and drawn from it, since the store keeps none for members.
        "uid": str(uuid.uuid5(root.uid, name)),
        "creationTimestamp": moment.render(root.submitted_at),
        "labels": labels,
    }


def _common(root: RootRow, row: JobRow) -> dict[str, Any]:
    return {
        "phase": row.state,
        "reason": row.reason and str(row.reason),
        "message": row.message,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "conditions": _conditions(row, row.finished_at or row.started_at or root.submitted_at),
    }


def _conditions(row: JobRow, since: datetime) -> tuple[StatusCondition, ...]:
    if row.state is State.SUCCEEDED:
        types: tuple[str, ...] = ("Complete",)
    else:
        types = ("Failed", "Stalled") if row.state in states.ENDS else ("Reconciling",)
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
    done = sum(row.state in states.ENDS for row in commands)
    return JobCounts(total=len(commands), done=done, **counts)


def _failure(row: JobRow) -> TaskFailure:
    return TaskFailure(
        name=row.name,
        index=row.index,
        reason=row.reason and str(row.reason),
        message=row.message,
        exit_code=row.exit_code,
    )

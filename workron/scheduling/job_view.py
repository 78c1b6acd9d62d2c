"""How a run in the store looks as custom resources: the same for every client.

`workron get -o json` prints these objects, and the controller writes their status to the cluster.
A status, its conditions and the output tail are made here and nowhere else.

Names: a job of a workflow is a Job named `workflow.task`, or `workflow.task.3` for an element of
an array. Task names have no dots, so two jobs of a namespace never get the same name. Groups have
no object of their own; their jobs do.

Conditions are made for tools that wait: `kubectl wait`, and readers of kstatus such as Helm,
Argo CD and Flux.

| state                                  | conditions that are True               |
|----------------------------------------|----------------------------------------|
| Waiting, Queued, Running               | Accepted, Reconciling                  |
| Waiting because it is suspended        | Accepted, Suspended, Reconciling       |
| Succeeded, or Skipped as NotNeeded     | Accepted, Complete                     |
| Failed, Cancelled, Skipped otherwise   | Accepted, Failed, Stalled              |

A job that was not needed is Complete: nothing went wrong, and no user has to act.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workron.core import printable
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
from workron.core.states import TERMINAL_STATES, Reason, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from workron.core.ids import JobId
    from workron.store.api import ReadStore
    from workron.store.types import JobFailure, JobRow, RunRow


WORKFLOW_LABEL: Final = "workron.dev/workflow"
TASK_LABEL: Final = "workron.dev/task"
INDEX_LABEL: Final = "workron.dev/index"

MAX_FAILURES: Final = 10
"""How many failed jobs the status of a workflow lists."""

_NAMED_FAILURES: Final = 5
"""How many failed jobs a message names."""

TAIL_BYTES: Final = 1024
TAIL_READ_BYTES: Final = printable.READ_BYTES
"""How much output to read for the tail: more than it shows, as control sequences are left out."""

_COMMAND_FIELDS: Final = field_names(CommandSpec)
_CONCURRENT_READS: Final = 100
"""Reads in flight at a time: one by one, the round trips would take most of the time."""


class Phase(NamedTuple):
    """The start of a status: a state, a reason in one word, and a sentence."""

    state: State
    reason: str | None = None
    message: str | None = None


def phase_of(row: JobRow) -> Phase:
    """Return the phase of a row; a row that waits for a time says which."""
    message = row.message
    if not message and row.due:
        verb = "retries" if row.reason is Reason.BACKOFF else "starts"
        message = f"{verb} at {base.format_timestamp(row.due.replace(microsecond=0))}"
    return Phase(row.state, row.reason and str(row.reason), message)


def workflow_phase(
    row: JobRow, counts: Mapping[State, int], *, is_suspended: bool, is_blocked: bool = False
) -> Phase:
    """Return the phase of a workflow, whose own row does not say why none of its jobs runs.

    `is_blocked` means that no worker can claim its queued jobs.
    """
    phase = phase_of(row)
    if row.state in TERMINAL_STATES or counts.get(State.RUNNING):
        return phase
    if is_suspended:
        return Phase(State.WAITING, Reason.SUSPENDED, phase.message)
    if (is_blocked or row.reason is Reason.UPSTREAM) and counts.get(State.QUEUED):
        return Phase(State.QUEUED, None, phase.message)
    return phase


def job_status(row: JobRow, output: bytes, phase: Phase, submitted_at: datetime) -> JobStatus:
    """Return the status of a Job."""
    return JobStatus(
        **_common(row, phase, submitted_at),
        attempts=row.attempts,
        failures=row.failures,
        losses=row.losses,
        exit_code=row.exit_code,
        worker=row.worker,
        output_tail=printable.tail(output, TAIL_BYTES) or None,
    )


def workflow_status(
    row: JobRow,
    counts: Mapping[State, int],
    failures: Sequence[JobFailure | JobRow],
    phase: Phase,
    submitted_at: datetime,
) -> WorkflowStatus:
    """Return the status of a Workflow: its jobs counted by state, and the first that failed."""
    done = sum(count for state, count in counts.items() if state in TERMINAL_STATES)
    by_name = {state.lower(): counts.get(state, 0) for state in State}
    if phase.state is State.SUCCEEDED:
        phase = phase._replace(message=allowed_failures(counts.get(State.FAILED, 0), failures))
    return WorkflowStatus(
        **_common(row, phase, submitted_at),
        jobs=JobCounts(total=sum(counts.values()), done=done, **by_name),
        first_failures=tuple(
            TaskFailure(
                name=one.name,
                index=one.index,
                reason=one.reason and str(one.reason),
                message=one.message,
                exit_code=one.exit_code,
            )
            for one in failures[:MAX_FAILURES]
        ),
    )


def failures_in_order(rows: Sequence[JobRow]) -> list[JobRow]:
    """Return the failed jobs, the first one first, as `list_failures` does."""
    failed = [row for row in rows if row.state is State.FAILED]
    return sorted(failed, key=lambda row: (row.finished_at, row.job))


def allowed_failures(count: int, failures: Sequence[JobFailure | JobRow]) -> str | None:
    """Return the message of a run that succeeded although this many jobs failed."""
    if not count:
        return None
    names = [
        one.name if one.index is None else f"{one.name}/{one.index}"
        for one in failures[:_NAMED_FAILURES]
    ]
    more = f" and {count - len(names):,} more" if count > len(names) else ""
    return f"{count:,} failure{'' if count == 1 else 's'} allowed: {', '.join(names)}{more}"


async def read_allowed_failures(reader: ReadStore, row: JobRow) -> str | None:
    """Return the message of a workflow that succeeded although jobs failed."""
    if row.kind is not Kind.WORKFLOW or row.state is not State.SUCCEEDED:
        return None
    count = (await reader.count_states(row.run)).get(State.FAILED, 0)
    failures = await reader.list_failures(row.run, _NAMED_FAILURES) if count else ()
    return allowed_failures(count, failures)


async def allowed_failures_of(reader: ReadStore, rows: Sequence[JobRow]) -> Mapping[JobId, str]:
    """Return the messages of those rows that are workflows which succeeded although jobs failed."""
    wanted = [row for row in rows if row.kind is Kind.WORKFLOW and row.state is State.SUCCEEDED]
    messages: dict[JobId, str] = {}
    for first in range(0, len(wanted), _CONCURRENT_READS):
        batch = wanted[first : first + _CONCURRENT_READS]
        found = await asyncio.gather(*(read_allowed_failures(reader, row) for row in batch))
        messages |= {row.job: text for row, text in zip(batch, found, strict=True) if text}
    return messages


def conditions_of(phase: Phase, since: datetime) -> tuple[StatusCondition, ...]:
    """Return the conditions that hold in a phase, and have held since then."""

    def condition(name: str, reason: str, message: str) -> StatusCondition:
        return StatusCondition(
            type=name, status="True", reason=reason, message=message, last_transition_time=since
        )

    reason, message = phase.reason or str(phase.state), phase.message or ""
    held = (condition(name, reason, message) for name in _condition_types(phase))
    return condition("Accepted", "Stored", ""), *held


def _condition_types(phase: Phase) -> tuple[str, ...]:
    match phase:
        case (State.SUCCEEDED, _, _) | (State.SKIPPED, Reason.NOT_NEEDED, _):
            return ("Complete",)
        case (State.FAILED | State.CANCELLED | State.SKIPPED, _, _):
            return ("Failed", "Stalled")
        case (_, Reason.SUSPENDED, _):
            return ("Suspended", "Reconciling")
        case _:
            return ("Reconciling",)


def _common(row: JobRow, phase: Phase, submitted_at: datetime) -> dict[str, Any]:
    return {
        "phase": phase.state,
        "reason": phase.reason and str(phase.reason),
        "message": phase.message,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "conditions": conditions_of(phase, row.finished_at or row.started_at or submitted_at),
    }


def object_name(run: RunRow, row: JobRow) -> str:
    """Return the name of a job as an object, unique in its namespace and kind."""
    if row.job == run.run:
        return run.name
    return f"{run.name}.{row.name}" + ("" if row.index is None else f".{row.index}")


async def read_job_object(
    reader: ReadStore, run: RunRow, row: JobRow, spec: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the Job object of one command; its status also has the result, which may be large."""
    output = await reader.read_output(row.job, last=TAIL_READ_BYTES) if row.attempts else b""
    found = job_object(run, row, spec, output)
    if row.state is State.SUCCEEDED and (result := await reader.read_result(row.job)) is not None:
        found["status"]["result"] = result
    return found


def job_object(run: RunRow, row: JobRow, spec: Mapping[str, Any], output: bytes) -> dict[str, Any]:
    """Return the Job object of one command, with the status that a cluster has."""
    status = job_status(row, output, phase_of(row), run.submitted_at)
    if row.job == run.run:
        return _object(Kind.JOB, run, run.metadata, spec, status)
    shown = {name: value for name, value in spec.items() if name in _COMMAND_FIELDS}
    return _object(Kind.JOB, run, _part_metadata(run, row), shown, status)


def _part_metadata(run: RunRow, row: JobRow) -> dict[str, Any]:
    name = object_name(run, row)
    labels = {WORKFLOW_LABEL: run.name, TASK_LABEL: row.name}
    if row.index is not None:
        labels[INDEX_LABEL] = str(row.index)
    # The uid is derived from the workflow's, as the store keeps none for the jobs of a workflow.
    return {"name": name, "uid": str(uuid.uuid5(run.uid, name)), "labels": labels}


def array_object(run: RunRow, rows: Sequence[JobRow], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object for an array, whose own row is the first of `rows`; only to be read."""
    elements = rows[1:]
    counts, failed = Counter(row.state for row in elements), failures_in_order(elements)
    status = workflow_status(rows[0], counts, failed, phase_of(rows[0]), run.submitted_at)
    return _object(Kind.ARRAY, run, _part_metadata(run, rows[0]), spec, status)


def workflow_object(run: RunRow, rows: Sequence[JobRow], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Workflow object; its own row is the first of `rows`."""
    commands = [row for row in rows if row.kind is Kind.JOB]
    counts = Counter(row.state for row in commands)
    is_suspended = any(row.reason is Reason.SUSPENDED for row in commands)
    failed = failures_in_order(commands)
    phase = workflow_phase(rows[0], counts, is_suspended=is_suspended)
    status = workflow_status(rows[0], counts, failed, phase, run.submitted_at)
    return _object(Kind.WORKFLOW, run, run.metadata, spec, status)


def _object(
    kind: Kind,
    run: RunRow,
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    status: JobStatus | WorkflowStatus,
) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": str(kind),
        "metadata": {
            "name": run.name,
            "namespace": run.namespace,
            "uid": str(run.uid),
            "creationTimestamp": base.format_timestamp(run.submitted_at),
            **{name: value for name, value in metadata.items() if value},
        },
        "spec": spec,
        "status": status.as_manifest(),
    }


class RunTime(NamedTuple):
    """When something began, and how many seconds it took."""

    began: datetime | None
    seconds: float | None


def has_run_time(row: JobRow) -> bool:
    """Return whether the row alone gives the time of its last attempt."""
    return row.kind is not Kind.JOB or row.attempts <= 1


def run_time(row: JobRow) -> RunTime:
    """Return the time from the first start to the end, which no attempt exceeds."""
    return _between(row.started_at, row.finished_at)


async def last_run_time(reader: ReadStore, row: JobRow) -> RunTime:
    """Return the time of the last attempt of an ended job, or of a group from start to end."""
    if not has_run_time(row) and row.state in TERMINAL_STATES:
        attempts = await reader.list_attempts(row.job)
        if attempts:
            return _between(attempts[-1].started_at, attempts[-1].finished_at)
    return run_time(row)


def _between(began: datetime | None, ended: datetime | None) -> RunTime:
    if began is None or ended is None:
        return RunTime(began, None)
    return RunTime(began, max(0.0, (ended - began).total_seconds()))


async def run_times(reader: ReadStore, rows: Sequence[JobRow]) -> Mapping[JobId, RunTime]:
    """Return the times of many jobs."""
    times: dict[JobId, RunTime] = {}
    for first in range(0, len(rows), _CONCURRENT_READS):
        batch = rows[first : first + _CONCURRENT_READS]
        found = await asyncio.gather(*(last_run_time(reader, row) for row in batch))
        times |= {row.job: time for row, time in zip(batch, found, strict=True)}
    return times


async def run_objects(reader: ReadStore, run: RunRow) -> list[dict[str, Any]]:
    """Return the objects of one run, in the order in which they were submitted."""
    rows, specs = await reader.list_jobs(run.run), await reader.list_specs(run.run)
    objects = []
    if run.kind is Kind.WORKFLOW:
        objects.append(workflow_object(run, rows, specs[run.run]))
    commands = [row for row in rows if row.kind is Kind.JOB]
    for first in range(0, len(commands), _CONCURRENT_READS):
        batch = commands[first : first + _CONCURRENT_READS]
        reads = (read_job_object(reader, run, row, specs[row.job]) for row in batch)
        objects += await asyncio.gather(*reads)
    return objects

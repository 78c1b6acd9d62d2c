"""Rows as a store returns them, for the tests of terminal output."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from workron.cli.progress import ObservedRun, RunSnapshot
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import State
from workron.store.types import JobRow, RunRow

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def run(name: str = "flow", kind: Kind = Kind.WORKFLOW, job: int = 1) -> RunRow:
    """Make the row of a run."""
    return RunRow(
        JobId(job), JobId(job + 99), "default", kind, name, uuid.uuid4(), "digest", NOON, {}
    )


def row(
    name: str, state: State, *, job: int = 2, index: int | None = None, **fields: Any
) -> JobRow:
    """Make the row of a job; `seconds` is how long it took, or for how long it has run."""
    seconds = fields.pop("seconds", None)
    began = None if seconds is None else NOON - timedelta(seconds=seconds)
    blank: dict[str, Any] = dict.fromkeys(
        ("group_id", "reason", "message", "exit_code", "worker", "due", "finished_at")
    )
    counted = dict.fromkeys(("priority", "attempts", "failures", "losses"), 0)
    rest = blank | counted | {"kind": Kind.JOB, "pool": "default", "started_at": began} | fields
    return JobRow(job=JobId(job), run=JobId(1), name=name, index=index, state=state, **rest)


def snapshot(*rows: JobRow, state: State = State.RUNNING) -> RunSnapshot:
    """Make a snapshot of one workflow with these jobs."""
    own = row("flow", state, job=1, kind=Kind.WORKFLOW)
    return RunSnapshot([ObservedRun(run(), [own, *rows])], (), ())


def numbered(names: Sequence[str], state: State) -> list[JobRow]:
    """Make a row for each name."""
    return [row(name, state, job=at) for at, name in enumerate(names, start=2)]

"""How jobs, times and ends are written on a terminal, the same in every command."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.scheduling import tail

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from workron.store.protocol import JobRow, RootRow

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400

COLOURS: Final = {
    State.WAITING: "dim",
    State.QUEUED: "dim",
    State.RUNNING: "cyan",
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.CANCELLED: "yellow",
    State.SKIPPED: "yellow",
}

TROUBLE: Final = frozenset({State.FAILED, State.CANCELLED})
"""States of a job that somebody may have to look at."""


def path(root: RootRow, row: JobRow) -> str:
    """Write a job as commands take it: `hello`, `etl/load`, `etl/transform/3`."""
    if row.job == root.root:
        return root.name
    return f"{root.name}/{row.name}" + ("" if row.index is None else f"/{row.index}")


def span(seconds: float) -> str:
    """Write a length of time, no finer than it matters."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), _MINUTE)
    if seconds < _HOUR:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // _MINUTE}:{minutes % _MINUTE:02} h"


def failures(row: JobRow) -> str:
    """Write how often a job has failed so far."""
    return "failed once" if row.failures == 1 else f"failed {row.failures} times"


def age(since: datetime, now: datetime) -> str:
    """Write how long ago something was, in one unit, as kubectl does."""
    seconds = max(0, int((now - since).total_seconds()))
    for unit, size in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def why(row: JobRow) -> str:
    """Say in a few words why a job stands as it does; nothing if its state says it all."""
    if row.kind is not Kind.JOB and row.reason is Reason.UPSTREAM:
        return ""
    if row.message:
        return f"{tail.line(row.message)} ({row.reason})" if row.reason else tail.line(row.message)
    return _REASONS.get(row.reason, str(row.reason)) if row.reason else ""


def pool_left_alone(name: str) -> str:
    """Say that a WorkerPool among the files changes nothing here."""
    return (
        f"workerpool/{name} left alone: its pods, with their image, slots and env, are made in a"
        " cluster only"
    )


def command(spec: Mapping[str, Any]) -> str:
    """Write a spec's command on one line: the first of its own."""
    if "argv" in spec:
        return tail.line(shlex.join(map(str, spec["argv"])))
    first, *rest = str(spec.get("command", "")).strip().splitlines() or [""]
    return tail.line(first) + (" …" if rest else "")


_REASONS: Final[Mapping[Reason | None, str]] = {
    Reason.UPSTREAM: "waits for others",
    Reason.BACKOFF: "waits to be tried again",
    Reason.SCHEDULED: "waits for its time",
    Reason.SUSPENDED: "suspended",
    Reason.AWAITING_PROOF: "waits for proof that a lost attempt is dead",
    Reason.MEMBER_FAILED: "a job of it failed",
    Reason.UPSTREAM_FAILED: "a job that it depends on failed",
    Reason.UPSTREAM_CANCELLED: "a job that it depends on was cancelled",
    Reason.NOT_NEEDED: "not needed",
    Reason.DEADLINE_EXCEEDED: "its deadline passed",
    Reason.WORKER_LOST: "its workers vanished too often",
}

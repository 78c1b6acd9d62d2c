"""Texts that say why a job is in its current state, for `workron describe` and `workron get`.

Only `read_queue_context` reads from the store; the rest works on what was read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from workron.core.model import base
from workron.core.plan import Kind
from workron.core.states import TERMINAL_STATES, Reason, State
from workron.store.types import Signal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from workron.core.ids import JobId
    from workron.store.api import ReadStore
    from workron.store.types import Blocker, JobRow, RunRow


_MAX_UPSTREAMS: Final = 10
"""How many unfinished upstreams are listed."""

_OVERDUE: Final = timedelta(seconds=5)
"""Longer than a maintainer needs, and than the clocks of two machines differ."""

_SIGNALS: Final[Mapping[Signal, str]] = {
    Signal.CANCEL: "is being cancelled",
    Signal.EXPIRE: "is being stopped: its deadline has passed",
    Signal.SUSPEND: "will be suspended when this attempt ends",
}
_UNDETECTED: Final = (
    "no maintainer is running, so a lost worker is not detected;"
    " start one: `workron maintain` or `workron run` on this store"
)


@dataclass(frozen=True, slots=True)
class QueueContext:
    """Facts on a namespace that the rows of its jobs do not contain."""

    now: datetime
    has_maintainer: bool = True
    pools: AbstractSet[str] = frozenset()
    """Pools that have at least one worker."""
    signals: Mapping[JobId, Signal] = field(default_factory=dict)
    """Of the jobs of one run."""

    def is_overdue(self, row: JobRow) -> bool:
        """Return whether the time that a job waits for has passed without effect."""
        return row.due is not None and self.now - row.due > _OVERDUE

    def lacks_worker(self, row: JobRow) -> bool:
        """Return whether a job is queued in a pool without workers."""
        is_queued = row.kind is Kind.JOB and row.state is State.QUEUED
        return is_queued and row.pool not in self.pools


async def read_queue_context(
    reader: ReadStore, namespace: str, now: datetime, run: RunRow | None = None
) -> QueueContext:
    """Read the context of a namespace, with the signals of `run` if it is given."""
    workers = await reader.count_workers()
    return QueueContext(
        now,
        has_maintainer=await reader.has_maintainer(),
        pools={pool for pool_namespace, pool in workers if pool_namespace == namespace},
        signals={} if run is None else await reader.list_signals(run.run),
    )


def is_blocked(row: JobRow) -> bool:
    """Return whether a job waits for upstreams; a group does not count, it waits for its jobs."""
    return row.kind is Kind.JOB and row.state is State.WAITING and row.reason is Reason.UPSTREAM


def explain(row: JobRow, blockers: Sequence[Blocker], context: QueueContext) -> list[str]:
    """Return one line, and one more for each thing that a job waits for; none if it has ended.

    `blockers` matter only if `is_blocked(row)`.
    """
    return [*_signal(row, context), *_state(row, blockers, context)]


def brief(row: JobRow, context: QueueContext) -> str:
    """Return a few words on what the row alone does not show; often none."""
    if context.lacks_worker(row):
        return _no_worker(row)
    if row.due and context.is_overdue(row):
        due = f"was due at {base.format_timestamp(row.due)}"
        return due if context.has_maintainer else f"{due}, no maintainer"
    return ", ".join(_signal(row, context))


def _signal(row: JobRow, context: QueueContext) -> list[str]:
    """Say what was requested and is not in effect yet; of a workflow, for any of its jobs."""
    if row.kind is Kind.JOB:
        return [_SIGNALS[context.signals[row.job]]] if row.job in context.signals else []
    is_cancelled = row.kind is Kind.WORKFLOW and Signal.CANCEL in context.signals.values()
    return [_SIGNALS[Signal.CANCEL]] if is_cancelled and row.state not in TERMINAL_STATES else []


def _no_worker(row: JobRow) -> str:
    return f"pool {row.pool!r} has no worker"


def _state(row: JobRow, blockers: Sequence[Blocker], context: QueueContext) -> list[str]:
    match row.state:
        case State.WAITING:
            return _waiting(row, blockers, context)
        case State.QUEUED:
            slot = f"waits for a free slot of a worker in pool {row.pool!r}"
            return [f"is queued; {_no_worker(row) if context.lacks_worker(row) else slot}"]
        case State.RUNNING if row.kind is not Kind.JOB:
            return ["some of its jobs have not ended"]
        case State.RUNNING:
            lines = [f"runs on worker {row.worker}, attempt {row.attempts}"]
            return lines if context.has_maintainer else [*lines, _UNDETECTED]
        case _:
            return []


def _waiting(row: JobRow, blockers: Sequence[Blocker], context: QueueContext) -> list[str]:
    is_overdue = context.is_overdue(row)
    due = base.format_timestamp(row.due) if row.due else "an unknown time"
    late = []
    if not context.has_maintainer:
        late = ["no maintainer is running; it needs one: `workron maintain`"]
    elif is_overdue:
        late = ["the maintainer is late"]
    match row.reason:
        case Reason.BACKOFF:
            times = "once" if row.failures == 1 else f"{row.failures} times"
            verb = "was due for a retry" if is_overdue else "retries"
            return [f"failed {times}; {verb} at {due}", *late]
        case Reason.SCHEDULED:
            verb = "was due to start" if is_overdue else "starts"
            return [f"{verb} at {due} at the earliest (startAfter)", *late]
        case Reason.SUSPENDED:
            return ["is suspended"]
        case Reason.AWAITING_PROOF:
            return ["waits for proof that its lost attempt is dead (overlap: Forbid)"]
        case _:
            is_job = row.kind is Kind.JOB
            return _upstreams(blockers) if is_job else ["none of its jobs has started"]


def _upstreams(blockers: Sequence[Blocker]) -> list[str]:
    unfinished = [one for one in blockers if one.state not in TERMINAL_STATES]
    if not unfinished:
        return ["all its upstreams have ended; the maintainer has yet to propagate this"]
    if any(one.kind is Kind.TASKS for one in unfinished):
        return ["starts when all tasks of the workflow have ended (finally)"]
    lines = [f"waits for {len(unfinished):,} of {len(blockers):,} upstreams:"]
    lines += [f"  {_blocker(one)}" for one in unfinished[:_MAX_UPSTREAMS]]
    if len(unfinished) > _MAX_UPSTREAMS:
        lines.append(f"  and {len(unfinished) - _MAX_UPSTREAMS:,} more")
    return lines


def _blocker(one: Blocker) -> str:
    if one.state is None:
        return f"{one.kind} {one.name!r} is not in the store yet; required: {one.condition}"
    name = one.name if one.index is None else f"{one.name}/{one.index}"
    return f"{name} is {one.state}; required: {one.condition}"

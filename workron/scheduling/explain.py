"""Says in words why a job is where it is, above all why it waits.

Called by `workron describe` and `workron get` with what the store knows; reads nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from workron.core import states
from workron.core.model import base
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.store.types import Signal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from workron.core.ids import JobId
    from workron.store.api import ReadStore
    from workron.store.types import Blocker, JobRow, RunRow


_SHOWN: Final = 10
_UNSEEN: Final = (
    "no maintainer is at work: should that worker be gone, `workron maintain` or `workron run` on"
    " this store finds out"
)

_MARKED: Final[Mapping[Signal, str]] = {
    Signal.CANCEL: "is being cancelled",
    Signal.EXPIRE: "is being ended, for its deadline has passed",
    Signal.HOLD: "is to be suspended when this attempt is over",
}


def is_blocked(row: JobRow) -> bool:
    """Tell whether what it waits for is of interest; of a group that would be all its members."""
    return row.kind is Kind.JOB and row.state is State.WAITING and row.reason is Reason.UPSTREAM


def explain(row: JobRow, blockers: Sequence[Blocker], around: QueueContext) -> list[str]:
    """Give one line, and one more for each thing that is waited for; none of what has ended.

    `blockers` need be known only of what `is_blocked`.
    """
    return [*_marked(row, around), *_standing(row, blockers, around)]


def brief(row: JobRow, around: QueueContext) -> str:
    """Say in a few words what a row by itself would pass over; mostly nothing."""
    if _lacks_worker(row, around):
        return _no_worker(row)
    if row.due and around.is_late(row):
        return f"was due at {base.format_timestamp(row.due)}" + ", no maintainer" * (
            not around.is_led
        )
    return ", ".join(_marked(row, around))


def _marked(row: JobRow, around: QueueContext) -> list[str]:
    """Say what was asked of it and is not in effect yet; of a workflow, of any of its jobs."""
    if row.kind is Kind.JOB:
        return [_MARKED[around.marks[row.job]]] if row.job in around.marks else []
    is_cancelled = row.kind is Kind.WORKFLOW and Signal.CANCEL in around.marks.values()
    return (
        [_MARKED[Signal.CANCEL]] if is_cancelled and row.state not in states.TERMINAL_STATES else []
    )


def _lacks_worker(row: JobRow, around: QueueContext) -> bool:
    is_ready = row.kind is Kind.JOB and row.state is State.QUEUED
    return is_ready and row.pool not in around.pools


def _no_worker(row: JobRow) -> str:
    return f"no worker of pool {row.pool!r} is there"


def _standing(row: JobRow, blockers: Sequence[Blocker], around: QueueContext) -> list[str]:
    if row.state is State.WAITING and row.kind is not Kind.JOB and row.reason is Reason.UPSTREAM:
        return ["none of its jobs has begun"]
    if row.state is State.WAITING:
        return _waiting(row, blockers, around)
    if row.state is State.QUEUED:
        slot = f"waits for a free slot of a worker of pool {row.pool!r}"
        return [f"is ready; {_no_worker(row) if _lacks_worker(row, around) else slot}"]
    if row.state is State.RUNNING and row.kind is Kind.JOB:
        return [
            f"runs on worker {row.worker}, attempt {row.attempts}",
            *[_UNSEEN] * (not around.is_led),
        ]
    if row.state is State.RUNNING:
        return ["its jobs have not all ended"]
    return []


def _waiting(row: JobRow, blockers: Sequence[Blocker], around: QueueContext) -> list[str]:
    match row.reason:
        case Reason.BACKOFF:
            times = "once" if row.failures == 1 else f"{row.failures} times"
            verb = "was to be tried again" if around.is_late(row) else "tries again"
            return _due(f"failed {times} so far; {verb} at {{}}", row, around)
        case Reason.SCHEDULED:
            verb = "might have started" if around.is_late(row) else "may start"
            return _due(f"{verb} at {{}} (startAfter)", row, around)
        case Reason.SUSPENDED:
            return ["is suspended"]
        case Reason.AWAITING_PROOF:
            return ["waits for proof that its lost attempt is dead (overlap: Forbid)"]
        case _:
            return _upstream(blockers)


def _due(words: str, row: JobRow, around: QueueContext) -> list[str]:
    """Tell a time, and who has to be there for it."""
    when = base.format_timestamp(row.due) if row.due else "a time that is not known yet"
    if not around.is_led:
        return [
            words.format(when),
            "no maintainer is at work, and it needs one: `workron maintain`",
        ]
    late = "the maintainer at work is behind with it"
    return [words.format(when), *[late] * around.is_late(row)]


def _upstream(blockers: Sequence[Blocker]) -> list[str]:
    open_ = [one for one in blockers if one.state not in states.TERMINAL_STATES]
    if not open_:
        return ["waits for ends that are still being passed on"]
    lines = [f"waits for {len(open_):,} of {len(blockers):,} upstreams:"]
    lines += [f"  {_blocker(one)}" for one in open_[:_SHOWN]]
    if len(open_) > _SHOWN:
        lines.append(f"  and {len(open_) - _SHOWN:,} more")
    return lines


def _blocker(one: Blocker) -> str:
    name = one.name if one.index is None else f"{one.name}/{one.index}"
    if one.state is None:
        return f"{one.kind} {name!r}, which is not in the store yet; asked for: {one.condition}"
    return f"{name} is {one.state}; asked for: {one.condition}"


_LATE: Final = timedelta(seconds=5)
"""More than a maintainer takes, and more than the clocks of two machines lie apart."""


@dataclass(frozen=True, slots=True)
class QueueContext:
    """What a row does not tell, of one namespace."""

    now: datetime
    is_led: bool = True
    pools: AbstractSet[str] = frozenset()
    """Those that any worker is of."""
    marks: Mapping[JobId, Signal] = field(default_factory=dict)

    def is_late(self, row: JobRow) -> bool:
        """Tell whether its time has passed, and nobody came."""
        return row.due is not None and self.now - row.due > _LATE


async def read_queue_context(
    reader: ReadStore, namespace: str, now: datetime, run: RunRow | None = None
) -> QueueContext:
    """Look around; marks are told of one run alone."""
    workers = await reader.count_workers()
    return QueueContext(
        now,
        is_led=await reader.has_maintainer(),
        pools={pool for where, pool in workers if where == namespace},
        marks={} if run is None else await reader.list_signals(run.run),
    )

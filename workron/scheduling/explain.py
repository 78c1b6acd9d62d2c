"""Says in words why a job is where it is, above all why it waits.

Called by `workron describe` with what the store knows; reads nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workron.core import states
from workron.core.model import moment
from workron.core.plan import Kind
from workron.core.states import Reason, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.store.protocol import Blocker, JobRow

_SHOWN: Final = 10


def is_blocked(row: JobRow) -> bool:
    """Tell whether what it waits for is of interest; of a group that would be all its members."""
    return row.kind is Kind.JOB and row.state is State.WAITING and row.reason is Reason.UPSTREAM


def explain(row: JobRow, blockers: Sequence[Blocker]) -> list[str]:
    """Give one line, and one more for each thing that is waited for; none of what has ended.

    `blockers` need be known only of what `is_blocked`.
    """
    if row.state is State.WAITING and row.kind is not Kind.JOB and row.reason is Reason.UPSTREAM:
        return ["none of its jobs has begun"]
    if row.state is State.WAITING:
        return _waiting(row, blockers)
    if row.state is State.QUEUED:
        return [f"is ready; waits for a free slot of a worker of pool {row.pool!r}"]
    if row.state is State.RUNNING and row.kind is Kind.JOB:
        return [f"runs on worker {row.worker}, attempt {row.attempts}"]
    if row.state is State.RUNNING:
        return ["its jobs have not all ended"]
    return []


def _waiting(row: JobRow, blockers: Sequence[Blocker]) -> list[str]:
    when = moment.render(row.due) if row.due else "a time that is not known yet"
    match row.reason:
        case Reason.BACKOFF:
            times = "once" if row.failures == 1 else f"{row.failures} times"
            return [f"failed {times} so far; tries again at {when}"]
        case Reason.SCHEDULED:
            return [f"may start at {when} (startAfter)"]
        case Reason.SUSPENDED:
            return ["is suspended"]
        case Reason.AWAITING_PROOF:
            return ["waits for proof that its lost attempt is dead (overlap: Forbid)"]
        case _:
            return _upstream(blockers)


def _upstream(blockers: Sequence[Blocker]) -> list[str]:
    open_ = [one for one in blockers if one.state not in states.ENDS]
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

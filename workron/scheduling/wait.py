"""Wait: until runs have ended, by whatever worker.

Called by `workron run` and `workron wait`; whoever calls it bounds the time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from workron.core import states

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workron.core.ids import JobId
    from workron.core.ports import Clock
    from workron.store.protocol import JobRow, Store

_POLL_SECONDS: Final = 0.5
_BREATH_SECONDS: Final = 0.05
"""Every end of a job wakes; counting after each of them would slow what is waited for."""
_LONGEST_BREATH_SECONDS: Final = 1.0
_SHARE: Final = 10
"""At most one part in so many of the time is spent counting, for the count of many jobs is slow."""


async def wait(store: Store, clock: Clock, roots: Iterable[JobId]) -> Sequence[JobRow]:
    """Answer the rows of the roots, in their order, when the last of them has ended."""
    return [await _ended(store, clock, root) for root in roots]


async def _ended(store: Store, clock: Clock, root: JobId) -> JobRow:
    while True:
        began = clock.monotonic()
        row = await _look(store, root)
        if row is not None:
            return row
        breath = _breath(clock.monotonic() - began)
        await store.wait_for_work(_POLL_SECONDS)
        await asyncio.sleep(breath)


def _breath(cost: float) -> float:
    """Say how long not to count after a count that took so long."""
    return min(max(_BREATH_SECONDS, _SHARE * cost), _LONGEST_BREATH_SECONDS)


async def _look(store: Store, root: JobId) -> JobRow | None:
    # Counting is cheap; all rows are loaded when only the root itself can be missing.
    counts = (await store.progress(root)).counts
    if any(count for state, count in counts.items() if state not in states.ENDS):
        return None
    row = (await store.jobs(root))[0]
    return row if row.state in states.ENDS else None

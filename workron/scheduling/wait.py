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
    from workron.store.protocol import JobRow, Store

_POLL_SECONDS: Final = 0.5
_BREATH_SECONDS: Final = 0.05
"""Every end of a job wakes; counting after each of them would slow what is waited for."""


async def wait(store: Store, roots: Iterable[JobId]) -> Sequence[JobRow]:
    """Answer the rows of the roots, in their order, when the last of them has ended."""
    return [await _ended(store, root) for root in roots]


async def _ended(store: Store, root: JobId) -> JobRow:
    while True:
        row = await _look(store, root)
        if row is not None:
            return row
        await store.wait_for_work(_POLL_SECONDS)
        await asyncio.sleep(_BREATH_SECONDS)


async def _look(store: Store, root: JobId) -> JobRow | None:
    # Counting is cheap; all rows are loaded when only the root itself can be missing.
    counts = (await store.progress(root)).counts
    if any(count for state, count in counts.items() if state not in states.ENDS):
        return None
    row = (await store.jobs(root))[0]
    return row if row.state in states.ENDS else None

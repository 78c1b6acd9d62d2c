"""Wait: until runs have ended, by whatever worker.

Called by `workron run` and `workron wait`; whoever calls it bounds the time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.core.ids import JobId
    from workron.store.protocol import JobRow, Store

_POLL_SECONDS: Final = 0.5
_BREATH_SECONDS: Final = 0.05
"""Every end of a job wakes; asking after each of them would slow what is waited for."""


async def wait(store: Store, roots: Sequence[JobId]) -> Sequence[JobRow]:
    """Answer the rows of the roots, in their order, when the last of them has ended."""
    open_ = set(roots)
    while open_ := open_ - await store.ended(list(open_)):
        await store.wait_for_work(_POLL_SECONDS)
        await asyncio.sleep(_BREATH_SECONDS)
    return await store.standing(roots)

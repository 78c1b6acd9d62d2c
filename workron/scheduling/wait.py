"""Wait: until runs have ended, by whatever worker.

Called by `workron run` and `workron wait`; whoever calls it bounds the time.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.core.ids import JobId
    from workron.scheduling.outage import Outage
    from workron.store.protocol import JobRow, Store

_POLL_SECONDS: Final = 0.5
_BREATH_SECONDS: Final = 0.05
"""Every end of a job wakes; asking after each of them would slow what is waited for."""


async def wait(
    store: Store, roots: Sequence[JobId], outage: Outage | None = None
) -> Sequence[JobRow]:
    """Answer the rows of the roots, in their order, when the last of them has ended.

    With an `outage`, a store that is away for a while is borne.
    """
    open_ = list(roots)
    while open_ := await _still_open(store, open_, outage):
        await store.wait_for_work(_POLL_SECONDS)
        await asyncio.sleep(_BREATH_SECONDS)
    read = functools.partial(store.standing, roots)
    return await (outage.bear(read) if outage else read())


async def _still_open(store: Store, roots: Sequence[JobId], outage: Outage | None) -> list[JobId]:
    ask = functools.partial(store.ended, roots)
    ended = await (outage.bear(ask) if outage else ask())
    return [root for root in roots if root not in ended]

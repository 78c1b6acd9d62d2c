"""Follow: what a job writes, as it comes, one attempt after the other, until the job has ended.

Called by `workron output --follow`. Only a job with `outputStream` is heard while it runs; of any
other what is kept comes with the end of each attempt.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Final, NamedTuple

from workron.core import states

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from workron.core.ids import JobId
    from workron.scheduling.outage import Outage
    from workron.store.protocol import JobRow, Store

_POLL_SECONDS: Final = 0.5
_BREATH_SECONDS: Final = 0.05
"""Every end of a job wakes; looking after each of them would be asking without a pause."""


class Part(NamedTuple):
    """Some of what an attempt wrote; nothing: the attempt begins, after another."""

    attempt: int
    data: bytes


async def follow(store: Store, job: JobId, outage: Outage) -> AsyncIterator[Part]:
    """Give what the current attempt wrote, or will write, and then all that come after it."""
    row = await _row(store, job, outage)
    attempt, chunk = max(1, row.attempts), 0
    while True:
        # The row is looked at before the pieces: so what it has left behind is complete.
        row = await _row(store, job, outage)
        ask = functools.partial(store.pieces, job, attempt, chunk)
        if pieces := await outage.bear(ask):
            chunk = pieces[-1].chunk + 1
            for piece in pieces:
                yield Part(attempt, piece.data)
        elif row.attempts > attempt:
            attempt, chunk = attempt + 1, 0
            yield Part(attempt, b"")
        elif row.state in states.ENDS:
            return
        else:
            await store.wait_for_work(_POLL_SECONDS)
            await asyncio.sleep(_BREATH_SECONDS)


async def _row(store: Store, job: JobId, outage: Outage) -> JobRow:
    [row] = await outage.bear(functools.partial(store.standing, [job]))
    return row

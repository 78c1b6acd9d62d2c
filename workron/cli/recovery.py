"""At the start: ends what killed workers of this machine left behind, and takes their claims back.

Called by `run`, which is a worker too, and by `worker` where it may. First the processes, then the
claims, so that no job runs twice at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workron.scheduling import reap
from workron_runner import orphans
from workron_worker import identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.store.protocol import Sighting, Store


async def recover(store: Store) -> Sequence[str]:
    """Do it, and answer what is to be said about it."""
    lines: list[str] = []

    async def is_dead(worker: Sighting) -> bool:
        if not identity.is_gone(worker.name):
            return False
        swept = await asyncio.to_thread(orphans.end, worker.boot)
        if not swept.is_clear:
            lines.append(_unclear(worker))
        elif swept.ended:
            lines.append(f"ended {_processes(swept.ended)} of a worker that was killed")
        return swept.is_clear

    for worker in await reap.reap_proven(store, is_dead):
        # The maintainer of that process held the office under the same id.
        await store.resign(worker.boot)
    return lines


def _unclear(worker: Sighting) -> str:
    if orphans.can_be_found():
        what = "some of its processes cannot be ended"
    else:
        what = "this system does not tell which processes it left"
    return f"a killed worker ({worker.name}) is given up only after its lease: {what}"


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"

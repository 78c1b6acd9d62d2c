"""Reap on proof: take back at once what dead workers held, without waiting for their leases.

Called by `workron run` before it submits, with what this machine knows of its own processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from workron.store.protocol import MaintainerDoor, Sighting


async def reap_proven(
    door: MaintainerDoor, is_dead: Callable[[Sighting], Awaitable[bool]]
) -> Sequence[Sighting]:
    """Reap each worker whose death is proven, its commands' included; answer which these are."""
    dead = []
    for worker in await door.look():
        if await is_dead(worker):
            # Its jobs are not to blame, and nothing loops: a person has to start the next run.
            await door.reap(worker.worker, sign=None, is_blaming=False)
            dead.append(worker)
    return dead

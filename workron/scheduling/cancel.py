"""Cancel a run: none of its jobs starts any more, and running ones are stopped.

A worker learns that it has to stop a job in the answer to its next heartbeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workron.core import errors

if TYPE_CHECKING:
    from workron.store.api import Store
    from workron.store.types import RunRow


_BATCH: Final = 1_000


async def cancel(store: Store, run: RunRow) -> None:
    """Cancel a run; StateError if it had ended before."""
    if not await store.cancel(run.run):
        raise errors.StateError(f"{run.kind} {run.name!r} has ended; it cannot be cancelled")
    # A store without a maintainer propagates nothing, and `workron wait` would never return.
    while await store.propagate(_BATCH):
        pass

"""Cancel: end a run, what runs of it included.

Called by `workron cancel`. The answer means that nothing of it starts any more; what runs hears of
it with its worker's next beat.
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
    # Nobody may be maintaining this store just now, and a wait for it should still come to an end.
    while await store.propagate(_BATCH):
        pass

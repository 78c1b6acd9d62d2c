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


async def cancel(store: Store, root: RunRow) -> None:
    """Cancel a root; StateError if it had ended before."""
    if not await store.cancel(root.root):
        raise errors.StateError(f"{root.kind} {root.name!r} has ended; it cannot be cancelled")
    # Nobody may be maintaining this store just now, and a wait for it should still come to an end.
    while await store.propagate(_BATCH):
        pass

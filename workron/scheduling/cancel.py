"""Cancel: end a run, what runs of it included.

Called by `workron cancel`. The answer means that nothing of it starts any more; what runs hears of
it with its worker's next beat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workron.core import errors

if TYPE_CHECKING:
    from workron.store.protocol import RootRow, SubmitDoor


async def cancel(door: SubmitDoor, root: RootRow) -> None:
    """Cancel a root; StateError if it had ended before."""
    if not await door.cancel(root.root):
        raise errors.StateError(f"{root.kind} {root.name!r} has ended; it cannot be cancelled")

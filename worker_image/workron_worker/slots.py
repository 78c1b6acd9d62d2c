"""How many commands may run at once, shared by the agents of one process.

Called by `loop`. An agent takes slots before it claims, so that two agents of different pools
never claim more than fits, and gives back what it found no job for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Slots:
    """A count of free slots, and those who found none."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = count
        self._hungry: dict[Callable[[], None], None] = {}

    def take(self, wake: Callable[[], None]) -> int:
        """Take all that are free; if none is, `wake` is called once when that has changed."""
        taken, self._free = self._free, 0
        if not taken:
            self._hungry[wake] = None
        return taken

    def give(self, count: int) -> None:
        """Give slots back."""
        if not count:
            return
        self._free += count
        # Only those who went away with nothing: waking all would have two idle agents wake each
        # other for ever.
        hungry, self._hungry = self._hungry, {}
        for wake in hungry:
            wake()

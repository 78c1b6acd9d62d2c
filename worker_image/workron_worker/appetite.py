"""How many claims an agent asks for at once: as many as came lately, and more if all of them came.

Called by `loop`. Each claim that is asked for costs its id, here and in the store, whether there is
a job for it or not; who has a thousand slots and runs a chain would pay for a thousand each hop.
Nor is it ever for more than half of many slots: with all of them in one exchange, the agent would
have nothing to start while the store answers, and the store nothing to do while it starts.
"""

from __future__ import annotations

from typing import Final

_FIRST: Final = 32
"""What is asked for while nothing has come yet."""
_LEAST: Final = 4


class Appetite:
    """Doubles while it is fed, and shrinks to twice what it was given when it was given less."""

    def __init__(self, slots: int) -> None:
        self._most = max(_FIRST, slots // 2)
        self._size = _FIRST
        self._left_some = False

    def of(self, free: int) -> int:
        """Say how many of the free slots to ask for."""
        asked = min(free, self._size, self._most)
        self._left_some = asked < free
        return asked

    def fed(self, *, asked: int, granted: int) -> bool:
        """Take in one answer; tell whether there are slots left, and maybe more for them."""
        if not asked:
            return False
        wider = max(_LEAST, 2 * granted)
        # All that was free may have been less than the appetite; that says nothing against it.
        self._size = max(self._size, wider) if granted == asked else min(self._size, wider)
        return granted == asked and self._left_some

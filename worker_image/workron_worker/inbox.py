"""What was heard of one attempt and is not stored yet: bounded, whatever the command writes.

Made by `stream`; filled and emptied on the agent's loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from workron_worker.executor import Done


def _nobody(_: int) -> None:
    """Stand for who waits for room before anything was heard."""


class Inbox:
    """Takes in the first bytes of an attempt up to a limit, and lets the rest go at once."""

    def __init__(self, limit: int, *, full: int, ring: Callable[[], None]) -> None:
        self._room = limit
        self._full = full
        self._ring = ring
        self._waiting = bytearray()
        self._owed = 0
        self._done: Done = _nobody

    @property
    def waiting(self) -> int:
        """How many bytes are here."""
        return len(self._waiting)

    def hear(self, data: bytes, done: Done) -> None:
        """Take in what there is room for; rings for the first bytes, and when there are many."""
        before = len(self._waiting)
        part = data[: self._room]
        self._waiting += part
        self._room -= len(part)
        self._owed += len(data)
        self._done = done
        after = len(self._waiting)
        # Once there is no room nothing comes to wait here any more, so nobody waits for it.
        if not self._room:
            self._pay_all()
        if (after and not before) or before < self._full <= after:
            self._ring()

    def take(self) -> tuple[bytes, Callable[[], None]]:
        """Give what came first, and what is to be called when it is dealt with."""
        data = bytes(self._waiting[: self._full])
        del self._waiting[: self._full]
        paid, done = self._pay(len(data)), self._done
        return data, lambda: done(paid) if paid else None

    def close(self) -> None:
        """Let go of all that is here and of all that will come."""
        self._room = 0
        self._waiting.clear()
        self._pay_all()

    def _pay_all(self) -> None:
        if paid := self._pay(self._owed):
            self._done(paid)

    def _pay(self, most: int) -> int:
        paid = min(most, self._owed)
        self._owed -= paid
        return paid

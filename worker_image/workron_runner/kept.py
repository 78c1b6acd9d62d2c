"""What is kept of a command's output: all of it while it is short, else its head and its tail.

Called by `attempt` with every chunk that a command writes; memory stays bounded however much that
is.
"""

from __future__ import annotations


class Kept:
    """Head and tail of a stream of bytes, exact, in at most `limit` bytes."""

    __slots__ = ("_head", "_limit", "_seen", "_tail")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0

    def add(self, data: bytes) -> None:
        """Take in the next piece."""
        self._seen += len(data)
        room = self._limit // 2 - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        # Cut seldom, by halves: cutting at every piece would move the whole tail each time.
        if len(self._tail) > 2 * self._limit:
            del self._tail[: len(self._tail) - self._limit]

    def value(self) -> bytes:
        """Give what is kept; where something is missing between head and tail, a line says so."""
        if self._seen <= self._limit:
            return bytes(self._head + self._tail)
        if (room := self._room()) > 0:
            return bytes(self._head + self._gap() + self._tail[-room:])
        return bytes(self._last(self._limit))

    @property
    def left_out(self) -> int:
        """How many bytes of the stream are missing in what is kept."""
        if self._seen <= self._limit:
            return 0
        gap = len(self._gap()) if self._room() > 0 else 0
        return self._seen - self._limit + gap

    def _gap(self) -> bytes:
        return b"\n[... of %d bytes in all, some are left out here ...]\n" % self._seen

    def _room(self) -> int:
        return self._limit - len(self._head) - len(self._gap())

    def _last(self, count: int) -> bytearray:
        return (self._head + self._tail)[-count:] if count else bytearray()

"""Waits for descriptors and calls whom they belong to.

Called by `runner`.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Turns:
    """Descriptors, each with what is called when there is something to read from it."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._calls: dict[int, Callable[[], None]] = {}
        self._writers: set[int] = set()

    def listen(self, descriptor: int, call: Callable[[], None]) -> None:
        """Call this whenever the descriptor can be read."""
        self._calls[descriptor] = call
        self._epoll.register(descriptor, select.EPOLLIN)

    def ignore(self, descriptor: int) -> None:
        """Wait for it no more."""
        if self._calls.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def also_write(self, descriptor: int, *, is_wanted: bool) -> None:
        """Wake also when the descriptor can be written to, or no more."""
        if descriptor in self._calls and is_wanted != (descriptor in self._writers):
            self._writers ^= {descriptor}
            self._epoll.modify(descriptor, select.EPOLLIN | (select.EPOLLOUT if is_wanted else 0))

    def wait(self, seconds: float | None) -> list[Callable[[], None]]:
        """Wait until something can be read, and give what is to be called."""
        ready = self._epoll.poll(seconds)
        return [self._calls[one] for one, _ in ready if one in self._calls]

    def close(self) -> None:
        """Wait for nothing any more."""
        self._epoll.close()

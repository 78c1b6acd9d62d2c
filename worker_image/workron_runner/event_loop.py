"""The runner's event loop (epoll) and its clock.

The clock is CLOCK_BOOTTIME, which agent and runner share and which goes on while the machine is
suspended. Because epoll's own timeout stops then, a poll lasts at most `CHECK_INTERVAL_SECONDS`
while anything runs.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Final

CHECK_INTERVAL_SECONDS: Final = 0.5


def boottime() -> float:
    """Read CLOCK_BOOTTIME."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class EventLoop:
    """Descriptors and the callback of each."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._writers: set[int] = set()

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call `callback` whenever the descriptor is readable."""
        self._callbacks[descriptor] = callback
        self._epoll.register(descriptor, select.EPOLLIN)

    def remove_reader(self, descriptor: int) -> None:
        """Forget the descriptor, if it is registered."""
        if self._callbacks.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def set_writable_wanted(self, descriptor: int, *, is_wanted: bool) -> None:
        """Wake up also when a registered descriptor is writable, or no longer."""
        if descriptor in self._callbacks and is_wanted != (descriptor in self._writers):
            self._writers ^= {descriptor}
            self._epoll.modify(descriptor, select.EPOLLIN | (select.EPOLLOUT if is_wanted else 0))

    def poll(self, timeout_seconds: float | None) -> list[Callable[[], None]]:
        """Wait for events and return the callbacks to run."""
        ready = self._epoll.poll(timeout_seconds)
        return [self._callbacks[one] for one, _ in ready if one in self._callbacks]

    def close(self) -> None:
        """Close the epoll descriptor."""
        self._epoll.close()

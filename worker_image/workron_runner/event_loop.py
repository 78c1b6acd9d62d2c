"""Waits for descriptors and calls whom they belong to.

Called by `runner`.
"""

from __future__ import annotations

import select
import time
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class EventLoop:
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


TICK_SECONDS: Final = 0.5
"""While anything runs, the runner looks this often: waiting itself stands still in a suspension."""


def clock_now() -> float:
    """Read the clock; agent and runner read the same one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(slots=True)
class Timer:
    """The next moment at which something has to be done about an attempt."""

    at: float = inf


class Timers:
    """Finds the attempts whose moment has come without looking at all of them each time."""

    def __init__(self) -> None:
        self._earliest = inf

    def set(self, term: Timer, at: float) -> None:
        """Set the moment of one attempt."""
        term.at = at
        self._earliest = min(self._earliest, at)

    def are_due(self, moment: float) -> bool:
        """Whether one of them may be due."""
        return moment >= self._earliest

    def renew(self, terms: Iterable[Timer]) -> None:
        """Look at all that there are, when some are over or were set anew."""
        self._earliest = min((one.at for one in terms), default=inf)

    def left(self, moment: float) -> float:
        """Tell how many seconds are left until the next may be due."""
        return max(0.0, self._earliest - moment)

"""Has two hear one command: it waits for the slower of them.

Called by `stream`, for an attempt that somebody else listens to as well.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workron_worker.executor import Done, OnOutput


def both(one: OnOutput | None, other: OnOutput) -> OnOutput:
    """Give what hands on to both."""
    return other if one is None else _Both(one, other)


class _Both:
    def __init__(self, *ears: OnOutput) -> None:
        self._ears = ears
        self._dealt_with = [0] * len(ears)

    def __call__(self, data: bytes, done: Done) -> None:
        for at, ear in enumerate(self._ears):
            ear(data, functools.partial(self._deal, at, done))

    def _deal(self, at: int, done: Done, count: int) -> None:
        before = min(self._dealt_with)
        self._dealt_with[at] += count
        if gained := min(self._dealt_with) - before:
            done(gained)

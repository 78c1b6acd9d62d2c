"""Long runs that give several figures at once, so that each runs only once in a round."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Generic, TypeVar

from bench.figure import Side

_T = TypeVar("_T")


class Series(Generic[_T]):
    """The runs of a measurement: the first side of a round runs it, the others read the result."""

    def __init__(self, measure: Callable[[], _T]) -> None:
        self._measure = measure
        self._runs: list[_T] = []

    def side(self, title: str, read: Callable[[_T], float]) -> Side:
        """Return a side that reads one number of each run, round after round."""
        rounds = itertools.count()
        return Side(title, lambda: read(self._run(next(rounds))))

    def _run(self, number: int) -> _T:
        if number == len(self._runs):
            self._runs.append(self._measure())
        return self._runs[number]

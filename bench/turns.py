"""Measures a figure in turns: Workron, the comparison, and Workron again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import ratio
from bench.figure import Figure, Goal, Side
from bench.ratio import Ratio


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison, measured."""

    figure: Figure
    theirs: Side
    goal: Goal | None
    ours_seen: Sequence[float]
    theirs_seen: Sequence[float]

    @property
    def ratio(self) -> Ratio:
        """Ours divided by theirs."""
        return ratio.of(self.ours_seen, self.theirs_seen)

    @property
    def verdict(self) -> str:
        """Say whether the goal is reached: by the whole interval, or by the median alone."""
        if self.goal is None:
            return ""
        if not self.goal.holds(self.ratio.middle):
            return "no"
        worst = self.ratio.high if self.goal.is_most else self.ratio.low
        return "yes" if self.goal.holds(worst) else "just"


def measured(figure: Figure, rounds: int, tell: Callable[[str], None]) -> list[Row]:
    """Measure every side once a round, ours first."""
    sides = [figure.ours, *(one.side for one in figure.against)]
    seen: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        for side, values in zip(sides, seen, strict=True):
            tell(f"{figure.name}: round {number + 1} of {rounds}: {side.title}")
            values.append(side.measure())
    ours, *theirs = seen
    return [
        Row(figure, one.side, one.goal, ours, values)
        for one, values in zip(figure.against, theirs, strict=True)
    ]

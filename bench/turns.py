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
    our_values: Sequence[float]
    their_values: Sequence[float]

    @property
    def ratio(self) -> Ratio:
        """Ours divided by theirs."""
        return ratio.of(self.our_values, self.their_values)

    @property
    def verdict(self) -> str:
        """Whether the whole interval (`yes`) or only the median (`just`) reaches the goal."""
        if self.goal is None:
            return ""
        if not self.goal.holds(self.ratio.middle):
            return "no"
        worst = self.ratio.high if self.goal.is_most else self.ratio.low
        return "yes" if self.goal.holds(worst) else "just"


def measured(figure: Figure, rounds: int, show: Callable[[str], None]) -> list[Row]:
    """Measure every side once a round, ours first."""
    sides = [figure.ours, *(one.side for one in figure.against)]
    values_of_sides: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        for side, values in zip(sides, values_of_sides, strict=True):
            show(f"{figure.name}: round {number + 1} of {rounds}: {side.title}")
            values.append(side.measure())
    ours, *theirs = values_of_sides
    return [
        Row(figure, one.side, one.goal, ours, values)
        for one, values in zip(figure.against, theirs, strict=True)
    ]

"""A figure: something of Workron, the sides that it is compared with, and the goal of the ratio.

The modules of `ours` make figures, and `turns` measures them. Each measurement of a side starts
from an empty state, so that no round finds what an earlier one left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import part


@dataclass(frozen=True, slots=True)
class Side:
    """Something that can be measured: a system, or a limit of the machine."""

    title: str
    measure: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Goal:
    """The required ratio of Workron to the other side."""

    ratio: float
    is_most: bool = False
    """Whether less is better, as for seconds and bytes."""

    def holds(self, ratio: float) -> bool:
        """Return whether a ratio reaches the goal."""
        return ratio <= self.ratio if self.is_most else ratio >= self.ratio

    def __str__(self) -> str:
        return f"{self.ratio:g} or {'less' if self.is_most else 'more'}"


@dataclass(frozen=True, slots=True)
class Against:
    """A side that Workron is compared with; without a goal it is only reported."""

    side: Side
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of Workron; the table has a row for each comparison."""

    name: str
    """Selects it: `python -m bench --only NAME`."""
    unit: str
    ours: Side
    against: Sequence[Against]
    part: str = part.MINUTES
    """The part that it is measured and published with."""

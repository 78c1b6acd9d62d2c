"""What a figure is: something of ours, what it is held against, and what their ratio is to be.

Made by the modules of `ours`, measured by `turns`. A side is measured again and again; each time it
begins from nothing, so that no round finds what an earlier one left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import part


@dataclass(frozen=True, slots=True)
class Side:
    """Something that can be measured: a system, or what a machine can do without one."""

    title: str
    measure: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Goal:
    """What the ratio of ours to theirs is to be."""

    ratio: float
    is_most: bool = False
    """Whether less is better, as it is with seconds and bytes."""

    def holds(self, ratio: float) -> bool:
        """Tell whether a ratio is as it should be."""
        return ratio <= self.ratio if self.is_most else ratio >= self.ratio

    def __str__(self) -> str:
        return f"{self.ratio:g} or {'less' if self.is_most else 'more'}"


@dataclass(frozen=True, slots=True)
class Against:
    """What ours is held against; without a goal it is only told."""

    side: Side
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table for each of those that ours is held against."""

    name: str
    """By which it is asked for: `python -m bench --only NAME`."""
    unit: str
    ours: Side
    against: Sequence[Against]
    part: str = part.MINUTES
    """With which it is measured and published."""

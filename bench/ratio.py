"""Ratios of what was measured in turns, and how far the middle one can be trusted.

Both sides of a pair were measured within seconds of each other, so that what else the machine did
is in both. Of the pairs' ratios the median is told, with an interval that needs no assumption on
how they are spread: between which of them, in order, the true median lies with 90 % or more.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import comb
from typing import Final, NamedTuple

_CONFIDENCE: Final = 0.9


class Ratio(NamedTuple):
    """The median, and where the true one lies; of fewer than five pairs, all that was seen."""

    middle: float
    low: float
    high: float


def of(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Divide pair by pair."""
    ratios = sorted(one / other for one, other in zip(ours, theirs, strict=True))
    left_out = _left_out(len(ratios))
    return Ratio(statistics.median(ratios), ratios[left_out], ratios[-1 - left_out])


def _left_out(count: int) -> int:
    """Say how many may be left out at each end."""
    left_out = 0
    while _confidence(count, left_out + 1) >= _CONFIDENCE:
        left_out += 1
    return left_out


def _confidence(count: int, left_out: int) -> float:
    outside = sum(comb(count, below) for below in range(left_out + 1))
    return 1.0 - outside / 2.0 ** (count - 1)

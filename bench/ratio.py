"""Ratios of measurements in turns, and the confidence interval of their median.

Both sides of a pair are measured within seconds of each other, so other load of the machine affects
both. The result is the median of the ratios. Its interval needs no assumption about their
distribution: it lies between those two of the sorted ratios that contain the true median with a
probability of at least 90 %.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import comb
from typing import Final, NamedTuple

_CONFIDENCE: Final = 0.9


class Ratio(NamedTuple):
    """The median and its interval; with fewer than five pairs, the range of all ratios."""

    middle: float
    low: float
    high: float


def of(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Divide pair by pair."""
    ratios = sorted(one / other for one, other in zip(ours, theirs, strict=True))
    left_out = _left_out(len(ratios))
    return Ratio(statistics.median(ratios), ratios[left_out], ratios[-1 - left_out])


def _left_out(count: int) -> int:
    """Return how many ratios to leave out at each end."""
    left_out = 0
    while _confidence(count, left_out + 1) >= _CONFIDENCE:
        left_out += 1
    return left_out


def _confidence(count: int, left_out: int) -> float:
    outside = sum(comb(count, below) for below in range(left_out + 1))
    return 1.0 - outside / 2.0 ** (count - 1)

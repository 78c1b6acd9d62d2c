"""Draws the ratios of a run as SVG: a dot for each, its interval, and its goal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final

from bench.turns import Row

_LINE: Final = 22
_LEFT: Final = 560
_WIDTH: Final = 420
_TOP: Final = 40
_COLORS: Final = {"yes": "#1a7f37", "just": "#9a6700", "no": "#cf222e", "": "#57606a"}
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#24292f}.rule{stroke:#d0d7de}.goal{stroke:#24292f;"
    "stroke-width:2}.name{text-anchor:end}.tick{text-anchor:middle;fill:#57606a}"
)


def svg(rows: Sequence[Row]) -> str:
    """Draw all rows on one logarithmic scale."""
    ratios = [value for row in rows for value in row.ratio if value > 0]
    low, high = floor(log10(min(ratios, default=1))), ceil(log10(max(ratios, default=1)))
    scale = _Scale(low, max(high, low + 1))
    height = _TOP + _LINE * len(rows) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 40}" height="{height}">',
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="white"/>',
        *scale.rules(height - 10),
        *(part for number, row in enumerate(rows) for part in _drawn(row, scale, number)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Scale:
    """The horizontal position of a ratio."""

    def __init__(self, low: int, high: int) -> None:
        self._low = low
        self._high = high

    def at(self, ratio: float) -> float:
        power = log10(ratio) if ratio > 0 else self._low  # zero is drawn at the left edge
        return _LEFT + _WIDTH * (power - self._low) / (self._high - self._low)

    def rules(self, bottom: float) -> Iterator[str]:
        for power in range(self._low, self._high + 1):
            x = self.at(10**power)
            yield f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{bottom}"/>'
            yield f'<text class="tick" x="{x:.1f}" y="{_TOP - 14}">{10.0**power:g}</text>'


def _drawn(row: Row, scale: _Scale, number: int) -> Iterator[str]:
    y = _TOP + _LINE * number + _LINE / 2
    color = _COLORS[row.verdict]
    low, middle, high = (scale.at(one) for one in (row.ratio.low, row.ratio.middle, row.ratio.high))
    name = f"{row.figure.name}: {row.theirs.title}"
    yield f'<text class="name" x="{_LEFT - 12}" y="{y + 4}">{escape(name)}</text>'
    if row.goal is not None:
        x = scale.at(row.goal.ratio)
        yield f'<line class="goal" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8}" y2="{y + 8}"/>'
    yield (
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="{color}"'
        ' stroke-width="3"/>'
    )
    yield f'<circle cx="{middle:.1f}" cy="{y}" r="4.5" fill="{color}"/>'

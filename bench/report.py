"""Reports a run: a table for people, and all measurements as JSON."""

from __future__ import annotations

import json
import os
import pathlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.config import Config
from bench.turns import Row

HEADING: Final = (
    "| Workron | | compared with | | ratio | interval | goal | reached |\n"
    "|---|---:|---|---:|---:|---|---|---|"
)
_LIMITS_HEADING: Final = "| this machine | before | after |\n|---|---:|---:|"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of the machine, measured before and after all figures."""

    title: str
    unit: str
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the bench."""

    config: Config
    limits: Sequence[Limit]
    rows: Sequence[Row]


def table(rows: Sequence[Row]) -> str:
    """Return the comparisons as a Markdown table."""
    return "\n".join([HEADING, *map(row, rows)]) + "\n"


def row(one: Row) -> str:
    """Return one comparison as a row of the table."""
    ratio, figure = one.ratio, one.figure
    cells = [
        f"{figure.ours.title}, {figure.unit}", _number(one.our_values), one.theirs.title,
        _number(one.their_values), f"{ratio.middle:.2f}", f"{ratio.low:.2f} to {ratio.high:.2f}",
        str(one.goal or ""), one.verdict,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def limits(measured: Sequence[Limit]) -> str:
    """Return the limits of the machine as a Markdown table."""
    lines = [
        f"| {one.title}, {one.unit} | {one.first:,.6g} | {one.last:,.6g} |" for one in measured
    ]
    return "\n".join([_LIMITS_HEADING, *lines]) + "\n"


def machine() -> str:
    """Describe the machine."""
    python = platform.python_version()
    return f"{os.cpu_count()} cores, Linux {platform.release()}, Python {python}"


def write(run: Run, folder: pathlib.Path) -> None:
    """Write the table and all measurements into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(_as_json(run), indent=2) + "\n", "utf-8")
    text = f"{machine()}\n\n{limits(run.limits)}\n{table(run.rows)}"
    (folder / "table.md").write_text(text, "utf-8")


def _number(values: Sequence[float]) -> str:
    middle = sorted(values)[len(values) // 2]
    if middle >= 100:  # noqa: PLR2004 - at most three digits are significant
        return f"{middle:,.0f}"
    return f"{middle:.3g}" if middle >= 0.001 else "0.000"  # noqa: PLR2004 - (the same)


def _as_json(run: Run) -> Mapping[str, Any]:
    return {
        "machine": machine(),
        "server": dict(run.config.server),
        "rounds": dict(run.config.rounds),
        "jobs": dict(run.config.jobs),
        "long": dict(run.config.long),
        "peers": dict(run.config.peers),
        "limits": [
            {"title": one.title, "unit": one.unit, "first": one.first, "last": one.last}
            for one in run.limits
        ],
        "rows": [_row_as_json(row) for row in run.rows],
    }


def _row_as_json(row: Row) -> Mapping[str, Any]:
    return {
        "figure": row.figure.name,
        "unit": row.figure.unit,
        "ours": row.figure.ours.title,
        "theirs": row.theirs.title,
        "our_values": list(row.our_values),
        "their_values": list(row.their_values),
        "ratio": row.ratio._asdict(),
        "goal": None if row.goal is None else str(row.goal),
        "reached": row.verdict,
    }

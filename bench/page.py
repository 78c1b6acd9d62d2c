"""The page of the docs that holds the last run that was published, and its picture."""

from __future__ import annotations

import pathlib
from typing import Final

from bench import plot, report
from bench.report import Run

_FOLDER: Final = pathlib.Path(__file__).parents[1] / "docs" / "explanation"
_PAGE: Final = """\
# Performance

Written by `{command}`: the last run that was published, good or bad, and never edited by hand. It
ran on {machine}; PostgreSQL on the same machine,
its commits safe on the disk, set up with {settings}.

How to read it: each row holds something of ours against a limit of the machine, or against what
people would use instead, measured in turns within the same minutes, {rounds} rounds. The ratio is
the median of the pairs; the interval is where the true one lies with 90 % or more. *Reached* is
`yes` if all of the interval reaches the goal, `just` if the median alone does. Absolute figures
change with the machine, and with the hour: they are there to tell what is divided by what.

![The ratios of the table below, each with its interval and its goal](performance.svg)

{table}
## What the machine could do

Taken before everything else, and again after it. The limits are of this bench's own making, and
frozen: statements of SQL on tables with our columns (`bench/limit`), or loops with nothing in them.

{limits}
"""


def publish(run: Run, command: str) -> None:
    """Write both."""
    settings = ", ".join(f"`{name} = {value}`" for name, value in run.config.server.items())
    text = _PAGE.format(
        command=command,
        machine=report.machine(),
        settings=settings,
        rounds=run.config.rounds,
        table=report.table(run.rows),
        limits=report.limits(run.limits).rstrip(),
    )
    (_FOLDER / "performance.md").write_text(text, "utf-8")
    (_FOLDER / "performance.svg").write_text(plot.svg(run.rows), "utf-8")

"""Writes the published page, docs/explanation/performance.md, and its pictures.

A run replaces only the parts that it has measured, each with its date, machine and command.
"""

from __future__ import annotations

import pathlib
import re
from datetime import UTC, datetime
from typing import Final

from bench import plot, report
from bench.part import PARTS
from bench.report import Run

_FOLDER: Final = pathlib.Path(__file__).parents[1] / "docs" / "explanation"
_PAGE: Final = """\
# Performance

These figures are the latest published run of `make bench`, good or bad. They are not edited by
hand. Each part gives its command, date and machine. PostgreSQL ran on the same machine, with
durable commits.

Each row compares Workron with a limit of the machine, with another system, or with a fixed bound.
Both sides were measured in turns within the same minutes. The ratio is the median over the pairs.
The interval contains the true median with a probability of at least 90 %; with fewer than five
rounds it is the range of all ratios. *Reached* is `yes` if the whole interval reaches the goal,
and `just` if only the median does. Absolute figures change with the machine and the time of day;
they only show what the ratio divides.

Each part also lists the limits of the machine. The bench defines these limits itself and keeps
them unchanged: SQL statements on tables with the columns of Workron (`bench/limit`), or empty
loops.

"""
_PART: Final = """\
<!-- {name} -->
## {title}

Written by `{command}` on {date}, on {machine}; PostgreSQL set up with {settings}; rounds: {rounds}.

![The ratios of the table below with their intervals and goals]({picture})

{table}
<details><summary>Limits of the machine before and after</summary>

{limits}

</details>
<!-- /{name} -->
"""
_NOT_PUBLISHED: Final = "<!-- {name} -->\n## {title}\n\nNot published yet.\n<!-- /{name} -->\n"


def publish(run: Run, command: str) -> None:
    """Write the parts that this run has measured."""
    page = _FOLDER / "performance.md"
    before = page.read_text("utf-8")
    parts = [_part(name, run, command) or _published(name, before) for name in PARTS]
    page.write_text(_PAGE + "\n".join(parts), "utf-8")


def _part(name: str, run: Run, command: str) -> str | None:
    rows = [row for row in run.rows if row.figure.part == name]
    if not rows:
        return None
    picture = f"performance-{name}.svg"
    (_FOLDER / picture).write_text(plot.svg(rows), "utf-8")
    return _PART.format(
        name=name,
        title=PARTS[name],
        command=command,
        date=datetime.now(UTC).date(),
        machine=report.machine(),
        settings=", ".join(f"`{name} = {value}`" for name, value in run.config.server.items()),
        rounds=run.config.rounds[name],
        picture=picture,
        table=report.table(rows),
        limits=report.limits(run.limits).rstrip(),
    )


def _published(name: str, page: str) -> str:
    found = re.search(rf"<!-- {name} -->\n.*<!-- /{name} -->\n", page, re.DOTALL)
    return found[0] if found else _NOT_PUBLISHED.format(name=name, title=PARTS[name])

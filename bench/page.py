"""The page of the docs that holds what was published last, and its pictures.

A run writes the parts that it has measured anew, each with its own date, machine and command, and
leaves the others as they were.
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

What was published last, good or bad, and never edited by hand: each part tells by which command,
when and where. PostgreSQL ran on the same machine, its commits safe on the disk.

How to read it: each row holds something of ours against a limit of the machine, against what people
would use instead, or against a fixed bound, measured in turns within the same minutes. The ratio is
the median of the pairs; the interval is where the true one lies with 90 % or more, and with fewer
than five rounds all that was seen. *Reached* is `yes` if all of the interval reaches the goal,
`just` if the median alone does. Absolute figures change with the machine, and with the hour: they
are there to tell what is divided by what.

What the machine could do is told with each part. These limits are of this bench's own making, and
frozen: statements of SQL on tables with our columns (`bench/limit`), or loops with nothing in them.

"""
_PART: Final = """\
<!-- {name} -->
## {title}

Written by `{command}` on {date}, on {machine}; PostgreSQL set up with {settings}; rounds: {rounds}.

![The ratios of the table below, each with its interval and its goal]({picture})

{table}
<details><summary>What the machine could do before that, and after it</summary>

{limits}

</details>
<!-- /{name} -->
"""
_NOTHING: Final = "<!-- {name} -->\n## {title}\n\nNot published yet.\n<!-- /{name} -->\n"


def publish(run: Run, command: str) -> None:
    """Write the parts of which this run has figures."""
    page = _FOLDER / "performance.md"
    before = page.read_text("utf-8")
    parts = [_part(name, run, command) or _kept(name, before) for name in PARTS]
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


def _kept(name: str, page: str) -> str:
    found = re.search(rf"<!-- {name} -->\n.*<!-- /{name} -->\n", page, re.DOTALL)
    return found[0] if found else _NOTHING.format(name=name, title=PARTS[name])

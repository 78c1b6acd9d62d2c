"""Measures Workron against the limits of this machine and against other systems (`make bench`).

Each figure of Workron and the side that it is compared with are measured in turns. The report gives
their ratio, because absolute figures change with the machine and its other load.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bench import config, figures, limits, page, part, plot, report, server, turns
from bench.config import HOME, Config
from bench.figure import Figure
from bench.peers import registry
from bench.report import Limit, Run
from bench.turns import Row


def main() -> None:
    """Measure, print each row at once, and write all measurements."""
    asked = _asked()
    settings = config.read("smoke" if asked.smoke else "try" if asked.brief else None)
    with server.running(settings.server) as dsn:
        run = _measured(settings, dsn, _chosen(settings, dsn, asked))
    report.write(run, HOME / "results")
    (HOME / "results" / "ratios.svg").write_text(plot.svg(run.rows), "utf-8")
    print(f"\n{report.limits(run.limits)}")
    if asked.publish:
        page.publish(run, " ".join(["python -m bench", *sys.argv[1:]]))
    print(f"written to {HOME / 'results'}: table.md, results.json, ratios.svg")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--parts",
        nargs="+",
        default=[part.MINUTES],
        choices=[*part.PARTS, part.EVERY],
        metavar="PART",
        help="one or more of %(choices)s; default: the part that takes minutes",
    )
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--smoke", action="store_true", help="only check that the bench itself works"
    )
    sizes.add_argument(
        "--try", action="store_true", dest="brief", help="run the long parts in smaller sizes"
    )
    parser.add_argument("--publish", action="store_true", help="also write docs/explanation")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="measure only these figures"
    )
    asked = parser.parse_args()
    if asked.publish and asked.only:
        parser.error("--publish needs all figures of a part: leave --only out")
    return asked


def _chosen(settings: Config, dsn: str, asked: argparse.Namespace) -> Sequence[Figure]:
    every = list(figures.every(settings, dsn))
    names = [one.name for one in every]
    if unknown := [name for name in asked.only if name not in names]:
        sys.exit(f"{', '.join(unknown)}: no such figure; the figures are {', '.join(names)}")
    if asked.only:
        return [one for one in every if one.name in asked.only]
    wanted = part.PARTS if part.EVERY in asked.parts else asked.parts
    return [one for one in every if one.part in wanted]


def _measured(settings: Config, dsn: str, chosen: Sequence[Figure]) -> Run:
    if missing := registry.missing(settings):
        print(f"not installed, so not compared: {', '.join(missing)}", file=sys.stderr)
    taken = list(limits.every(settings, dsn))
    first = [_limit(one) for one in taken]
    rows: list[Row] = []
    print(report.HEADING, flush=True)
    for figure in chosen:
        rows += (measured := turns.measured(figure, settings.rounds[figure.part], _show_progress))
        _show_progress("")
        print("\n".join(map(report.row, measured)), flush=True)
    last = [_limit(one) for one in taken]
    seen = [
        Limit(one.side.title, one.unit, before, after)
        for one, before, after in zip(taken, first, last, strict=True)
    ]
    return Run(settings, seen, rows)


def _limit(one: limits.Taken) -> float:
    _show_progress(f"the machine: {one.side.title}")
    return one.side.measure()


def _show_progress(what: str) -> None:
    """Show what is being measured, on a line that the next call replaces; only on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what:.100}", end="", file=sys.stderr, flush=True)


main()

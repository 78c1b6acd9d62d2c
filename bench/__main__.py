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
    options = _parse()
    settings = config.read("smoke" if options.smoke else "try" if options.brief else None)
    with server.running(settings.server) as dsn:
        run = _measured(settings, dsn, _chosen(settings, dsn, options))
    report.write(run, HOME / "results")
    (HOME / "results" / "ratios.svg").write_text(plot.svg(run.rows), "utf-8")
    print(f"\n{report.limits(run.limits)}")
    if options.publish:
        page.publish(run, " ".join(["python -m bench", *sys.argv[1:]]))
    print(f"written to {HOME / 'results'}: table.md, results.json, ratios.svg")


def _parse() -> argparse.Namespace:
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
    options = parser.parse_args()
    if options.publish and options.only:
        parser.error("--publish needs all figures of a part: omit --only")
    return options


def _chosen(settings: Config, dsn: str, options: argparse.Namespace) -> Sequence[Figure]:
    every = list(figures.every(settings, dsn))
    names = [one.name for one in every]
    if unknown := [name for name in options.only if name not in names]:
        sys.exit(f"{', '.join(unknown)}: no such figure; the figures are {', '.join(names)}")
    if options.only:
        return [one for one in every if one.name in options.only]
    wanted = part.PARTS if part.EVERY in options.parts else options.parts
    return [one for one in every if one.part in wanted]


def _measured(settings: Config, dsn: str, chosen: Sequence[Figure]) -> Run:
    if missing := registry.missing(settings):
        print(f"not installed and not compared: {', '.join(missing)}", file=sys.stderr)
    every = list(limits.every(settings, dsn))
    first = [_limit(one) for one in every]
    rows: list[Row] = []
    print(report.HEADING, flush=True)
    for figure in chosen:
        rows += (new := turns.measured(figure, settings.rounds[figure.part], _show_progress))
        _show_progress("")
        print("\n".join(map(report.row, new)), flush=True)
    last = [_limit(one) for one in every]
    measured = [
        Limit(one.side.title, one.unit, before, after)
        for one, before, after in zip(every, first, last, strict=True)
    ]
    return Run(settings, measured, rows)


def _limit(one: limits.MachineLimit) -> float:
    _show_progress(f"the machine: {one.side.title}")
    return one.side.measure()


def _show_progress(what: str) -> None:
    """Show the current measurement on a line that the next call replaces; only on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what:.100}", end="", file=sys.stderr, flush=True)


main()

"""Explore all configurations and print the results: `python -m tests.protocol`.

`--small` explores only the configurations of every test run, `--traces` also prints the shortest
counterexample of each mutant, and `--write` writes the figures into the documentation. Exit code 1
means that a result is not the expected one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.protocol import configurations, explorer, mutants, page, report
from tests.protocol.explorer import Report
from tests.protocol.mutants import Mutant
from tests.protocol.rules import Rules

Pairs = list[tuple[Mutant, Report]]


class Run:
    """One run of the command, and the lines that it has printed."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        self.lines += lines
        show(*lines)

    def configurations(self, chosen: Sequence[Rules]) -> bool:
        """Explore each completely; return whether all is sound and nothing is missing."""
        self.say(report.HEADING)
        found = []
        for rules in chosen:
            found.append(explorer.explore(rules))
            self.say(report.configuration_line(found[-1]))
            if found[-1].broken is not None:
                show(*report.counterexample(rules.name, found[-1]))
        self.say(*report.coverage(found))
        return not report.missing(found) and all(one.broken is None for one in found)

    def mutants(self, title: str, chosen: Sequence[Mutant]) -> Pairs:
        self.say("", report.mutants_heading(title))
        pairs = []
        for mutant in chosen:
            pairs.append((mutant, explorer.explore(mutant.rules)))
            self.say(report.mutant_line(*pairs[-1]))
        return pairs


def show(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore, print, and return the exit code."""
    chosen = _parser().parse_args(arguments)
    run = Run()
    large = () if chosen.small else configurations.LARGE
    is_sound = run.configurations((*configurations.SMALL, *large))
    seen = run.mutants("without the guard", mutants.MUTANTS)
    harmless = run.mutants("without a guard that another one backs", mutants.BACKED_GUARDS)
    limits = run.mutants("beyond the limits of the promise", mutants.LIMITS)
    run.say("", report.mutant_score(seen))
    if chosen.traces:
        for mutant, found in (*seen, *limits):
            show("", *report.counterexample(mutant.name, found))
    if chosen.write:
        page.write(run.lines)
    is_seen = all(found.broken is mutant.breaks for mutant, found in (*seen, *limits))
    is_harmless = all(found.broken is None for _, found in harmless)
    return 0 if is_sound and is_seen and is_harmless else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.protocol")
    parser.add_argument("--small", action="store_true", help="without the large configurations")
    parser.add_argument("--traces", action="store_true", help="print each counterexample")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())

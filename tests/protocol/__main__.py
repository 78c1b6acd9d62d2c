"""Explore everything and print what was found: `python -m tests.protocol`.

With `--small` only the configurations that every test run explores, with `--traces` also the
shortest counterexample of each mutant, with `--write` the figures go into the documentation too.
Exit code 1 says that something is not as it should be.
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
    """One run of the command, and what it has printed."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        self.lines += lines
        show(*lines)

    def configurations(self, chosen: Sequence[Rules]) -> bool:
        """Explore each to its end; answer whether all is sound and nothing was missed."""
        self.say(report.HEADING)
        found = []
        for rules in chosen:
            found.append(explorer.explore(rules))
            self.say(report.configuration_line(found[-1]))
            if found[-1].broken is not None:
                show(*report.story(rules.name, found[-1]))
        self.say(*report.meetings(found))
        return not report.missed(found) and all(one.broken is None for one in found)

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
    """Explore, print, and answer the exit code."""
    chosen = _parser().parse_args(arguments)
    run = Run()
    large = () if chosen.small else configurations.LARGE
    is_sound = run.configurations((*configurations.SMALL, *large))
    seen = run.mutants("without the guard", mutants.MUTANTS)
    harmless = run.mutants("without a guard that another stands behind", mutants.SECOND_LINES)
    limits = run.mutants("beyond the limits of the promise", mutants.LIMITS)
    run.say("", report.score(seen))
    if chosen.traces:
        for mutant, found in (*seen, *limits):
            show("", *report.story(mutant.name, found))
    if chosen.write:
        page.write(run.lines)
    is_seen = all(found.broken is mutant.breaks for mutant, found in (*seen, *limits))
    is_harmless = all(found.broken is None for _, found in harmless)
    return 0 if is_sound and is_seen and is_harmless else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.protocol")
    parser.add_argument("--small", action="store_true", help="leave the large ones out")
    parser.add_argument("--traces", action="store_true", help="tell each counterexample")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())

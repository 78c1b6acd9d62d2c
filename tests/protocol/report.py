"""Results as lines, for the command and for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.protocol import trace
from tests.protocol.explorer import Report
from tests.protocol.mutants import Mutant
from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Fault

HEADING = (
    f"{'configuration':40}{'states':>11}{'transitions':>13}{'depth':>7}{'violations':>12}"
    f"{'CPU s':>9}"
)


def configuration_line(found: Report) -> str:
    """One configuration; only the seconds differ between machines."""
    return (
        f"{found.rules.name:40}{found.states:>11,}{found.transitions:>13,}{found.depth:>7}"
        f"{0 if found.broken is None else 1:>12}{found.seconds:>9.1f}"
    )


def mutants_heading(title: str) -> str:
    return f"{title:75}{'breaks':>8}{'steps':>9}"


def mutant_line(mutant: Mutant, found: Report) -> str:
    """The invariant that broke first without these guards, and the number of steps."""
    if found.broken is None:
        return f"{mutant.name:75}{'nothing':>8}{'-':>9}"
    return f"{mutant.name:75}{found.broken.partition(':')[0]:>8}{len(found.path) - 1:>9}"


def mutant_score(pairs: Sequence[tuple[Mutant, Report]]) -> str:
    """How many mutants broke the expected invariant."""
    killed = sum(found.broken is mutant.breaks for mutant, found in pairs)
    return f"mutants killed: {killed}/{len(pairs)}"


def missing(reports: Sequence[Report]) -> list[str]:
    """Faults and rare branches that none of these explorations reached."""
    met: set[Fault | RareBranch] = set()
    for found in reports:
        met |= found.marks | found.faults
    return [one for kind in (Fault, RareBranch) for one in kind if one not in met]


def coverage(reports: Sequence[Report]) -> Iterator[str]:
    """Whether every fault and every rare branch occurred."""
    absent = missing(reports)
    every = f"{len(Fault)} kinds of fault and {len(RareBranch)} rare branches"
    yield f"reached: all of {every}" if not absent else f"of {every}, not reached:"
    yield from (f"    {one}" for one in absent)


def counterexample(title: str, found: Report) -> Iterator[str]:
    """The shortest path to the broken invariant."""
    yield f"without: {title}"
    yield f"breaks {found.broken}"
    yield from trace.lines(found.path, found.rules)

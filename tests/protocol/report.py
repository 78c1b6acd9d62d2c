"""What was found, as lines for a person: the command prints them, the documentation holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.protocol import trace
from tests.protocol.explorer import Report
from tests.protocol.mutants import Mutant
from tests.protocol.rules import Fault
from tests.protocol.sometimes import Sometimes

HEADING = (
    f"{'configuration':40}{'states':>11}{'transitions':>13}{'depth':>7}{'violations':>12}"
    f"{'CPU s':>9}"
)


def configuration_line(found: Report) -> str:
    """One configuration; all but the seconds is the same on every machine."""
    return (
        f"{found.rules.name:40}{found.states:>11,}{found.transitions:>13,}{found.depth:>7}"
        f"{0 if found.broken is None else 1:>12}{found.seconds:>9.1f}"
    )


def mutants_heading(title: str) -> str:
    return f"{title:75}{'breaks':>8}{'steps':>9}"


def mutant_line(mutant: Mutant, found: Report) -> str:
    """What broke first without these guards, and in how many steps."""
    if found.broken is None:
        return f"{mutant.name:75}{'nothing':>8}{'-':>9}"
    return f"{mutant.name:75}{found.broken.partition(':')[0]:>8}{len(found.path) - 1:>9}"


def score(pairs: Sequence[tuple[Mutant, Report]]) -> str:
    """How many mutants broke what they should."""
    killed = sum(found.broken is mutant.breaks for mutant, found in pairs)
    return f"mutants killed: {killed}/{len(pairs)}"


def missed(reports: Sequence[Report]) -> list[str]:
    """Faults and rare branches that none of these explorations met."""
    met: set[Fault | Sometimes] = set()
    for found in reports:
        met |= found.marks | found.faults
    return [one for kind in (Fault, Sometimes) for one in kind if one not in met]


def meetings(reports: Sequence[Report]) -> Iterator[str]:
    """Whether everything that may happen did."""
    lacking = missed(reports)
    every = f"{len(Fault)} kinds of fault and {len(Sometimes)} rare branches"
    yield f"met: all of {every}" if not lacking else f"of {every} missed:"
    yield from (f"    {one}" for one in lacking)


def story(title: str, found: Report) -> Iterator[str]:
    """The shortest way to what broke."""
    yield f"without: {title}"
    yield f"breaks {found.broken}"
    yield from trace.lines(found.path, found.rules)

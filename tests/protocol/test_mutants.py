"""The protocol without one of its guards: the search has to find the broken invariant."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.protocol import explored, explorer, mutants, page, report, trace
from tests.protocol.invariants import Invariant
from tests.protocol.mutants import Mutant
from tests.protocol.rules import Guard

pytestmark = pytest.mark.slow


def _name(mutant: Mutant) -> str:
    return mutant.name


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=_name)
def test_mutant_breaks_its_invariant(mutant: Mutant) -> None:
    assert explored.mutant(mutant.name).broken is mutant.breaks


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=_name)
def test_page_has_the_length_of_a_counterexample(mutant: Mutant) -> None:
    line = report.mutant_line(mutant, explored.mutant(mutant.name))
    assert line in page.figures(), "write them again: python -m tests.protocol --write"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", mutants.BACKED_GUARDS, ids=_name)
def test_nothing_breaks_when_another_guard_backs_the_missing_one(mutant: Mutant) -> None:
    assert explorer.explore(mutant.rules).broken is None


@pytest.mark.parametrize("mutant", mutants.BACKED_GUARDS, ids=_name)
def test_backed_guard_has_a_mutant_without_both(mutant: Mutant) -> None:
    assert any(set(mutant.guards) < set(other.guards) for other in mutants.MUTANTS)


@pytest.mark.parametrize("limit", mutants.LIMITS, ids=_name)
def test_invariant_breaks_beyond_a_limit_of_the_promise(limit: Mutant) -> None:
    assert explorer.explore(limit.rules).broken is limit.breaks


def test_guard_has_a_mutant() -> None:
    assert {guard for mutant in mutants.MUTANTS for guard in mutant.guards} == set(Guard)


def test_invariant_is_broken_by_a_mutant() -> None:
    assert {mutant.breaks for mutant in mutants.MUTANTS} == set(Invariant)


def test_mutants_have_different_names() -> None:
    names = Counter(mutant.name for mutant in mutants.MUTANTS)
    assert names.most_common(1)[0][1] == 1


def test_mutant_allows_no_fault_that_its_sound_configuration_does_not() -> None:
    for mutant in mutants.MUTANTS:
        assert mutant.rules.faults.items() <= mutant.configuration.faults.items()
        assert mutant.rules.at_most == mutant.configuration.at_most


def _trace(*guards: Guard) -> list[str]:
    (mutant,) = (one for one in mutants.MUTANTS if one.guards == guards)
    found = explored.mutant(mutant.name)
    return list(trace.lines(found.path, found.rules))


def test_trace_is_shortest_when_two_workers_claim_one_job() -> None:
    assert _trace(Guard.JOB_LOCK) == [
        "  1. W1: asks for a claim",
        "  2. W2: asks for a claim",
        "  3. W1: claims: the store selects a job",
        "  4. W2: claims: the store selects a job",
        "  5. W1: claims (job 1, id 1, fence 1): granted",
        "  6. W2: claims (job 1, id 1, fence 2): granted",
    ]


@pytest.mark.parametrize("guard", [Guard.FENCE_WITH_ID, Guard.FIRST_HEARTBEAT])
def test_page_has_the_counterexample_of_the_search(guard: Guard) -> None:
    assert "\n".join(_trace(guard)) in page.PAGE.read_text()

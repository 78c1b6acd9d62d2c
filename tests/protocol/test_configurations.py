"""The protocol with all its guards: no invariant breaks in any reachable state."""

from __future__ import annotations

import itertools

import pytest

from tests.protocol import __main__, configurations, explored, explorer, page, report, space
from tests.protocol.rules import Rules
from tests.protocol.state import Agent, initial

pytestmark = pytest.mark.slow


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", explored.CONFIGURATIONS)
def test_configuration_breaks_nothing(name: str) -> None:
    found = explored.configuration(name)
    assert found.broken is None, "\n".join(report.counterexample(name, found))


@pytest.mark.timeout(300)
def test_faults_and_rare_branches_all_occur() -> None:
    assert report.missing([explored.configuration(name) for name in explored.CONFIGURATIONS]) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", explored.CONFIGURATIONS)
def test_page_has_the_figures_of_a_configuration(name: str) -> None:
    line = report.configuration_line(explored.configuration(name))
    # The seconds depend on the machine.
    assert line.rsplit(maxsplit=1)[0] in [
        shown.rsplit(maxsplit=1)[0] for shown in page.figures() if shown
    ], "write them again: python -m tests.protocol --write"


def test_names_of_configurations_differ() -> None:
    every = [*configurations.SMALL, *configurations.LARGE]
    assert len({rules.name for rules in every}) == len(every)


def test_snapshot_is_the_same_when_workers_are_swapped() -> None:
    start = initial(workers=3, jobs=1)
    one, two, three = start.workers
    workers = (one, two._replace(age=1), three._replace(agent=Agent.FROZEN))
    graph = space.Space(Rules(name="three workers", faults={}, at_most=0, workers=3))
    keys = {graph.key(start._replace(workers=order)) for order in itertools.permutations(workers)}
    assert len(keys) == 1


def test_snapshot_is_restored_from_its_number() -> None:
    start = initial(workers=2, jobs=2)
    graph = space.Space(Rules(name="two jobs", faults={}, at_most=0, jobs=2))
    assert graph.state(graph.key(start)) == start


def test_search_has_the_same_result_when_it_is_repeated() -> None:
    first, second = (explorer.explore(configurations.TWO_JOBS) for _ in range(2))
    assert (first.states, first.transitions, first.depth, first.marks) == (
        second.states,
        second.transitions,
        second.depth,
        second.marks,
    )


def test_command_fails_when_a_rare_branch_is_not_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not __main__.Run().configurations([configurations.OUTAGES])
    assert "not reached:\n    a standby falls behind\n" in capsys.readouterr().out

"""Connections that are reset in the middle of a commit, or that go silent without a word."""

import pytest

from faults import processes
from faults.house import LEASE_SECONDS, House
from faults.proxy import Line, Moment

_CUTS = 4
_STATEMENT_SECONDS = 15
"""How long a worker waits for an answer before it takes a line for dead."""


@pytest.mark.parametrize("verb", ["claim", "complete"])
@pytest.mark.parametrize("moment", list(Moment), ids=lambda one: one.name.lower())
def test_call_whose_line_is_reset_is_repeated_and_nothing_runs_twice(
    house: House, moment: Moment, verb: str
) -> None:
    house.maintainer()
    house.submit("flow", work=":", after={"command": ":", "dependsOn": [{"name": "work"}]})
    proxy = house.proxy()
    reached = proxy.at(moment, verb, Line.cut)
    house.worker(proxy=proxy)
    house.await_end()
    assert reached.is_set()
    assert set(house.rows("state", "attempts", "failures", "losses")) == {("Succeeded", 1, 0, 0)}
    assert house.check().wrongs == []
    assert len(house.executions()) == 2


def test_all_lines_are_reset_again_and_again_and_a_job_runs_on(house: House) -> None:
    house.maintainer()
    gate = house.folder / "go"
    house.submit("flow", work=f"live {gate}")
    worker = house.worker(lease_seconds=5 * LEASE_SECONDS)
    house.await_execution()
    sockets = processes.open_sockets(worker.pid)
    for _ in range(_CUTS):
        worker.proxy.cut()
        house.await_beats(worker, 1)
    gate.touch()
    house.await_end()
    assert house.states() == {"work": ("Succeeded", None, 1, 0, 0)}
    assert house.check().wrongs == []
    assert processes.open_sockets(worker.pid) < sockets + _CUTS, "lines that are cut are kept open"


def test_call_on_a_half_open_line_is_given_up_and_repeated_on_another(house: House) -> None:
    house.maintainer()
    proxies = {}
    for verb in ("claim", "complete"):
        house.submit(verb, work=":")
        proxy = proxies[verb] = house.proxy()
        reached = proxy.at(Moment.AFTER, verb, Line.hush)
        house.worker("--slots", 1, proxy=proxy)
        assert reached.wait(30), house.told()
    house.await_end(seconds=_STATEMENT_SECONDS + 30)
    assert set(house.rows("state", "attempts", "failures", "losses")) == {("Succeeded", 1, 0, 0)}
    assert house.check().wrongs == []
    assert len(house.executions()) == 2


def test_beats_on_half_open_lines_are_given_up_before_the_lease_is_over(house: House) -> None:
    house.maintainer()
    house.submit("flow", work=f"live {house.folder}/go")
    worker = house.worker(lease_seconds=5 * LEASE_SECONDS)
    house.await_execution()
    worker.proxy.hush()
    house.await_beats(worker, 1)
    # All others of its lines are silent still, and are given up in their own time.
    worker.proxy.cut()
    (house.folder / "go").touch()
    house.await_end()
    assert house.states() == {"work": ("Succeeded", None, 1, 0, 0)}
    assert house.check().wrongs == []


def test_worker_that_is_cut_off_ends_what_it_runs_before_another_begins_it(house: House) -> None:
    house.maintainer()
    house.submit("flow", work=f"live {house.folder}/go-$WORKRON_ATTEMPT")
    worker = house.worker()
    first = house.await_execution()
    worker.proxy.silence()
    house.await_death(first, seconds=LEASE_SECONDS)
    house.await_reap(worker)
    house.worker()
    house.await_execution(attempt=2)
    worker.proxy.restore()
    house.until(lambda: house.knows(worker), "it has come back")
    assert house.unfinished() == 1
    (house.folder / "go-2").touch()
    house.await_end()
    assert house.states()["work"][:4] == ("Succeeded", None, 2, 0)
    findings = house.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])

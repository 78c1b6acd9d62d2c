"""Connections that are reset in the middle of a commit, or that go silent without a word."""

import pytest

from faults import processes
from faults.harness import LEASE_SECONDS, FaultHarness
from faults.proxy import Line, Moment

_CUTS = 4
_STATEMENT_SECONDS = 15
"""How long a worker waits for an answer before it takes a line for dead."""


@pytest.mark.parametrize("verb", ["claim", "complete"])
@pytest.mark.parametrize("moment", list(Moment), ids=lambda one: one.name.lower())
def test_call_whose_line_is_reset_is_repeated_and_nothing_runs_twice(
    harness: FaultHarness, moment: Moment, verb: str
) -> None:
    harness.maintainer()
    harness.submit("flow", work=":", after={"command": ":", "dependsOn": [{"name": "work"}]})
    proxy = harness.proxy()
    reached = proxy.at(moment, verb, Line.cut)
    harness.worker(proxy=proxy)
    harness.await_end()
    assert reached.is_set()
    assert set(harness.rows("state", "attempts", "failures", "losses")) == {("Succeeded", 1, 0, 0)}
    assert harness.check().wrongs == []
    assert len(harness.executions()) == 2


def test_all_lines_are_reset_again_and_again_and_a_job_runs_on(harness: FaultHarness) -> None:
    harness.maintainer()
    gate = harness.folder / "go"
    harness.submit("flow", work=f"live {gate}")
    worker = harness.worker(lease_seconds=5 * LEASE_SECONDS)
    harness.await_execution()
    sockets = processes.open_sockets(worker.pid)
    for _ in range(_CUTS):
        worker.proxy.cut()
        harness.await_heartbeats(worker, 1)
    gate.touch()
    harness.await_end()
    assert harness.states() == {"work": ("Succeeded", None, 1, 0, 0)}
    assert harness.check().wrongs == []
    assert processes.open_sockets(worker.pid) < sockets + _CUTS, "lines that are cut are kept open"


def test_call_on_a_half_open_line_is_given_up_and_repeated_on_another(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    proxies = {}
    for verb in ("claim", "complete"):
        harness.submit(verb, work=":")
        proxy = proxies[verb] = harness.proxy()
        reached = proxy.at(Moment.AFTER, verb, Line.hush)
        harness.worker("--slots", 1, proxy=proxy)
        assert reached.wait(30), harness.told()
    harness.await_end(seconds=_STATEMENT_SECONDS + 30)
    assert set(harness.rows("state", "attempts", "failures", "losses")) == {("Succeeded", 1, 0, 0)}
    assert harness.check().wrongs == []
    assert len(harness.executions()) == 2


def test_beats_on_half_open_lines_are_given_up_before_the_lease_is_over(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=f"live {harness.folder}/go")
    worker = harness.worker(lease_seconds=5 * LEASE_SECONDS)
    harness.await_execution()
    worker.proxy.hush()
    harness.await_heartbeats(worker, 1)
    # All others of its lines are silent still, and are given up in their own time.
    worker.proxy.cut()
    (harness.folder / "go").touch()
    harness.await_end()
    assert harness.states() == {"work": ("Succeeded", None, 1, 0, 0)}
    assert harness.check().wrongs == []


def test_worker_that_is_cut_off_ends_what_it_runs_before_another_begins_it(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=f"live {harness.folder}/go-$WORKRON_ATTEMPT")
    worker = harness.worker()
    first = harness.await_execution()
    worker.proxy.silence()
    harness.await_death(first, seconds=LEASE_SECONDS)
    harness.await_reap(worker)
    harness.worker()
    harness.await_execution(attempt=2)
    worker.proxy.restore()
    harness.until(lambda: harness.knows(worker), "it has come back")
    assert harness.unfinished() == 1
    (harness.folder / "go-2").touch()
    harness.await_end()
    assert harness.states()["work"][:4] == ("Succeeded", None, 2, 0)
    findings = harness.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])

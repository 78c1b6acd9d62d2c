"""Connections that are reset during a commit, or become half-open."""

import pytest

from faults import processes
from faults.harness import LEASE_SECONDS, FaultHarness
from faults.proxy import Moment, ProxyConnection

_RESETS = 4
_STATEMENT_SECONDS = 15
"""How long a worker waits for an answer before it gives up a connection."""


@pytest.mark.parametrize("verb", ["claim", "complete"])
@pytest.mark.parametrize("moment", list(Moment), ids=lambda one: one.name.lower())
def test_call_is_repeated_and_nothing_runs_twice_when_its_connection_is_reset(
    harness: FaultHarness, moment: Moment, verb: str
) -> None:
    harness.maintainer()
    harness.submit("flow", work=":", after={"command": ":", "dependsOn": [{"name": "work"}]})
    proxy = harness.proxy()
    reached = proxy.at(moment, verb, ProxyConnection.reset)
    harness.worker(proxy=proxy)
    harness.await_end()
    assert reached.is_set()
    assert set(harness.rows("state", "attempts", "failures", "losses")) == {("Succeeded", 1, 0, 0)}
    assert harness.check().errors == []
    assert len(harness.executions()) == 2


def test_job_keeps_running_when_all_connections_are_reset_repeatedly(harness: FaultHarness) -> None:
    harness.maintainer()
    gate = harness.folder / "go"
    harness.submit("flow", work=f"live {gate}")
    worker = harness.worker(lease_seconds=5 * LEASE_SECONDS)
    harness.await_execution()
    sockets = processes.open_sockets(worker.pid)
    for _ in range(_RESETS):
        worker.proxy.reset()
        harness.await_heartbeats(worker, 1)
    gate.touch()
    harness.await_end()
    assert harness.states() == {"work": ("Succeeded", None, 1, 0, 0)}
    assert harness.check().errors == []
    assert processes.open_sockets(worker.pid) < sockets + _RESETS, "reset connections are kept open"


def test_call_is_repeated_on_another_connection_when_its_own_is_half_open(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    proxies = {}
    for verb in ("claim", "complete"):
        harness.submit(verb, work=":")
        proxy = proxies[verb] = harness.proxy()
        reached = proxy.at(Moment.AFTER, verb, ProxyConnection.drop)
        harness.worker("--slots", 1, proxy=proxy)
        assert reached.wait(30), harness.logs()
    harness.await_end(seconds=_STATEMENT_SECONDS + 30)
    assert set(harness.rows("state", "attempts", "failures", "losses")) == {("Succeeded", 1, 0, 0)}
    assert harness.check().errors == []
    assert len(harness.executions()) == 2


def test_heartbeat_times_out_before_the_lease_expires_when_connections_are_half_open(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=f"live {harness.folder}/go")
    worker = harness.worker(lease_seconds=5 * LEASE_SECONDS)
    harness.await_execution()
    worker.proxy.drop()
    harness.await_heartbeats(worker, 1)
    # Its other connections are still half-open until their own timeouts.
    worker.proxy.reset()
    (harness.folder / "go").touch()
    harness.await_end()
    assert harness.states() == {"work": ("Succeeded", None, 1, 0, 0)}
    assert harness.check().errors == []


def test_command_is_killed_before_another_begins_when_its_worker_is_disconnected(
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
    harness.until(lambda: harness.knows(worker), "it is registered again")
    assert harness.unfinished() == 1
    (harness.folder / "go-2").touch()
    harness.await_end()
    assert harness.states()["work"][:4] == ("Succeeded", None, 2, 0)
    harness.assert_nothing_found()

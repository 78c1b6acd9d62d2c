"""A worker is terminated while its store is unavailable: it exits in time and logs what is left."""

import json
from collections.abc import Callable

import pytest

from faults import processes
from faults.harness import FaultHarness, now
from faults.proxy import Proxy
from workron.cli import exit_codes

_GRACE_SECONDS = 2
_LEASE_SECONDS = 60.0
_PROMISE_SECONDS = 3
_SPARE_SECONDS = 1.0
"""For the start and the exit of a process on a busy machine."""


def _refuse(proxy: Proxy) -> None:
    proxy.refuse()


def _silence(proxy: Proxy) -> None:
    proxy.silence()


_outage = pytest.mark.parametrize("outage", [_refuse, _silence])


def _lines(worker_log: str) -> list[str]:
    return [
        json.loads(line)["event"] if line.startswith("{") else line
        for line in worker_log.splitlines()
    ]


@_outage
def test_worker_exits_at_once_when_it_holds_no_claim(
    harness: FaultHarness, outage: Callable[[Proxy], None]
) -> None:
    worker = harness.worker("--grace", "1h", lease_seconds=_LEASE_SECONDS)
    harness.await_heartbeats(worker, 1)
    outage(worker.proxy)
    harness.until(
        lambda: "heartbeat not answered" in worker.log.read_text(), "a heartbeat is missed", 60
    )
    since = now()
    assert worker.end() == 0
    assert now() - since < _PROMISE_SECONDS + _SPARE_SECONDS
    lines = _lines(worker.log.read_text())
    assert "worker draining" in lines
    assert lines[-1] == "deregistration failed; the lease will expire"
    assert not {"stopping running jobs and requeueing them", "stopped waiting for the store"} & {
        *lines
    }


@_outage
@pytest.mark.parametrize("has_ended", [False, True])
def test_worker_exits_in_time_and_logs_its_claims_when_it_holds_some(
    harness: FaultHarness, outage: Callable[[Proxy], None], *, has_ended: bool
) -> None:
    harness.submit("flow", work=f"live {harness.folder}/go")
    worker = harness.worker("--grace", f"{_GRACE_SECONDS}s", lease_seconds=_LEASE_SECONDS)
    command = harness.await_execution()
    outage(worker.proxy)
    if has_ended:
        (harness.folder / "go").touch()
        harness.await_death(command, 10)
    since = now()
    assert worker.end() == exit_codes.STORE
    assert now() - since < _GRACE_SECONDS + _PROMISE_SECONDS + _SPARE_SECONDS
    assert not processes.is_alive(command.pid)
    lines = _lines(worker.log.read_text())
    assert ("stopping running jobs and requeueing them" in lines) != has_ended
    assert lines[-1].startswith("workron: ")
    assert lines[-1].endswith("the store requeues 1 job of this worker when its lease expires")

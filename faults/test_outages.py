"""PostgreSQL crashes and is unavailable for less or more than a lease."""

import pathlib
from collections.abc import Iterator

import pytest

from faults import processes
from faults.harness import LEASE_SECONDS, FaultHarness, now

_LONG_LEASE_SECONDS = 10.0
_JOBS = 4


@pytest.fixture
def crashed(harness: FaultHarness) -> Iterator[list[bool]]:
    """Whether the server is down; it is started again after the test in any case."""
    is_down: list[bool] = []
    yield is_down
    if is_down:
        harness.server.start()


def _begin(harness: FaultHarness, lease_seconds: float) -> None:
    """Have two workers run jobs that end when a file exists."""
    harness.maintainer()
    harness.submit("flow", work={"command": f"live {_gate(harness)}", "count": _JOBS})
    for _ in range(2):
        harness.worker("--slots", _JOBS // 2, lease_seconds=lease_seconds)
    harness.until(lambda: len(harness.executions()) == _JOBS, "all jobs run")


def _gate(harness: FaultHarness) -> pathlib.Path:
    return harness.folder / "go"


def _begin_again(harness: FaultHarness, crashed: list[bool]) -> None:
    crashed.clear()
    harness.server.start()


def test_no_attempt_is_lost_when_an_outage_is_shorter_than_a_lease(
    harness: FaultHarness, crashed: list[bool]
) -> None:
    _begin(harness, _LONG_LEASE_SECONDS)
    harness.server.crash()
    crashed.append(True)
    _begin_again(harness, crashed)
    _gate(harness).touch()
    harness.await_end()
    assert set(harness.rows("attempts", "failures", "losses")) == {(1, 0, 0)}
    assert harness.check().errors == []


def test_commands_are_killed_and_no_worker_is_reaped_when_an_outage_is_longer_than_a_lease(
    harness: FaultHarness, crashed: list[bool]
) -> None:
    _begin(harness, LEASE_SECONDS)
    before = harness.executions()
    harness.server.crash()
    crashed.append(True)
    since = now()
    harness.until(
        lambda: not any(processes.is_alive(one.pid) for one in before),
        "no command outlives its lease",
        seconds=LEASE_SECONDS,
    )
    harness.until(lambda: now() > since + 2 * LEASE_SECONDS, "two leases have passed")
    _begin_again(harness, crashed)
    _gate(harness).touch()
    harness.await_end()
    assert all(worker.is_alive for worker in harness.workers)
    assert set(harness.rows("failures", "losses")) == {(0, 0)}
    harness.assert_nothing_found()


def test_end_is_reported_after_the_outage_when_a_command_ends_during_it(
    harness: FaultHarness, crashed: list[bool]
) -> None:
    _begin(harness, _LONG_LEASE_SECONDS)
    harness.server.crash()
    crashed.append(True)
    _gate(harness).touch()
    harness.until(lambda: all(one.has_ended for one in harness.executions()), "all commands end")
    _begin_again(harness, crashed)
    harness.await_end()
    assert set(harness.rows("attempts", "failures", "losses")) == {(1, 0, 0)}
    assert harness.check().errors == []

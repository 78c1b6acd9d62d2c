"""PostgreSQL dies where it stands, and is away for less than a lease, or for more."""

import pathlib
from collections.abc import Iterator

import pytest

from faults import processes
from faults.house import LEASE_SECONDS, House, now

_LONG_LEASE_SECONDS = 10.0
_JOBS = 4


@pytest.fixture
def crashed(house: House) -> Iterator[list[bool]]:
    """Whether the server is away; it is there again after the test, whatever became of that."""
    is_away: list[bool] = []
    yield is_away
    if is_away:
        house.server.begin()


def _begin(house: House, lease_seconds: float) -> None:
    """Have two workers run jobs that go on until they may end."""
    house.maintainer()
    house.submit("flow", work={"command": f"live {_gate(house)}", "count": _JOBS})
    for _ in range(2):
        house.worker("--slots", _JOBS // 2, lease_seconds=lease_seconds)
    house.until(lambda: len(house.executions()) == _JOBS, "all jobs run")


def _gate(house: House) -> pathlib.Path:
    return house.folder / "go"


def _begin_again(house: House, crashed: list[bool]) -> None:
    crashed.clear()
    house.server.begin()


def test_outage_shorter_than_a_lease_costs_no_attempt(house: House, crashed: list[bool]) -> None:
    _begin(house, _LONG_LEASE_SECONDS)
    house.server.crash()
    crashed.append(True)
    _begin_again(house, crashed)
    _gate(house).touch()
    house.await_end()
    assert set(house.rows("list_attempts", "failures", "losses")) == {(1, 0, 0)}
    assert house.check().wrongs == []


def test_outage_longer_than_a_lease_ends_what_runs_in_time_and_reaps_nobody(
    house: House, crashed: list[bool]
) -> None:
    _begin(house, LEASE_SECONDS)
    before = house.executions()
    house.server.crash()
    crashed.append(True)
    since = now()
    house.until(
        lambda: not any(processes.is_alive(one.pid) for one in before),
        "no command outlives its lease",
        seconds=LEASE_SECONDS,
    )
    house.until(lambda: now() > since + 2 * LEASE_SECONDS, "two leases go by")
    _begin_again(house, crashed)
    _gate(house).touch()
    house.await_end()
    assert all(worker.is_alive for worker in house.workers)
    assert set(house.rows("list_failures", "losses")) == {(0, 0)}
    findings = house.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_end_that_comes_during_an_outage_is_reported_after_it(
    house: House, crashed: list[bool]
) -> None:
    _begin(house, _LONG_LEASE_SECONDS)
    house.server.crash()
    crashed.append(True)
    _gate(house).touch()
    house.until(lambda: all(one.has_ended for one in house.executions()), "all commands end")
    _begin_again(house, crashed)
    house.await_end()
    assert set(house.rows("list_attempts", "failures", "losses")) == {(1, 0, 0)}
    assert house.check().wrongs == []

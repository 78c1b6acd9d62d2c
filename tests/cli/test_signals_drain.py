"""What signals do to a worker."""

import signal
from collections.abc import Callable
from datetime import timedelta
from typing import cast

import pytest

from workron.cli.local_workers import LocalWorkers
from workron.cli.signals import DrainSignals


class Target:
    """Notes what is asked of it."""

    running = 3

    def __init__(self) -> None:
        self.asked: list[str] = []

    def drain(self) -> None:
        self.asked.append("drain")

    def kill(self) -> None:
        self.asked.append("kill")


class Timers:
    """Calls when the test says so."""

    def __init__(self) -> None:
        self.set: list[tuple[float, Callable[[], object]]] = []

    def call_later(self, delay: float, callback: Callable[[], object]) -> None:
        self.set.append((delay, callback))


@pytest.fixture
def target() -> Target:
    return Target()


@pytest.fixture
def timers() -> Timers:
    return Timers()


@pytest.fixture
def drain(target: Target, timers: Timers) -> DrainSignals:
    return DrainSignals(cast("LocalWorkers", target), timedelta(seconds=25), timers.call_later)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_worker_drains_when_the_first_signal_arrives(
    drain: DrainSignals, target: Target, number: signal.Signals
) -> None:
    drain.handle(number)
    assert target.asked == ["drain"]


def test_running_jobs_are_stopped_when_the_grace_period_expires(
    drain: DrainSignals, target: Target, timers: Timers
) -> None:
    drain.handle(signal.SIGTERM)
    [(delay, callback)] = timers.set
    callback()
    assert (delay, target.asked) == (25.0, ["drain", "kill"])


def test_running_jobs_are_stopped_once_when_more_signals_arrive(
    drain: DrainSignals, target: Target, timers: Timers
) -> None:
    for _ in range(3):
        drain.handle(signal.SIGTERM)
    timers.set[0][1]()
    assert target.asked == ["drain", "kill"]
    assert len(timers.set) == 1

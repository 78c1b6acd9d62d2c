"""A worker drains on the first signal, and stops its jobs on the second."""

import signal
from collections.abc import Callable
from datetime import timedelta
from typing import cast

import pytest

from workron.cli.local_workers import LocalWorkers
from workron.cli.signals import DrainSignals


class FakeWorkers:
    """Records the calls."""

    running = 3

    def __init__(self) -> None:
        self.calls: list[str] = []

    def drain(self) -> None:
        self.calls.append("drain")

    def kill(self) -> None:
        self.calls.append("kill")


class FakeTimers:
    """Records timers, which the test calls."""

    def __init__(self) -> None:
        self.set: list[tuple[float, Callable[[], object]]] = []

    def call_later(self, delay: float, callback: Callable[[], object]) -> None:
        self.set.append((delay, callback))


@pytest.fixture
def workers() -> FakeWorkers:
    return FakeWorkers()


@pytest.fixture
def timers() -> FakeTimers:
    return FakeTimers()


@pytest.fixture
def drain(workers: FakeWorkers, timers: FakeTimers) -> DrainSignals:
    return DrainSignals(cast("LocalWorkers", workers), timedelta(seconds=25), timers.call_later)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_worker_drains_when_the_first_signal_arrives(
    drain: DrainSignals, workers: FakeWorkers, number: signal.Signals
) -> None:
    drain.handle(number)
    assert workers.calls == ["drain"]


def test_running_jobs_are_stopped_when_the_grace_period_expires(
    drain: DrainSignals, workers: FakeWorkers, timers: FakeTimers
) -> None:
    drain.handle(signal.SIGTERM)
    [(delay, callback)] = timers.set
    callback()
    assert (delay, workers.calls) == (25.0, ["drain", "kill"])


def test_running_jobs_are_stopped_once_when_more_signals_arrive(
    drain: DrainSignals, workers: FakeWorkers, timers: FakeTimers
) -> None:
    for _ in range(3):
        drain.handle(signal.SIGTERM)
    timers.set[0][1]()
    assert workers.calls == ["drain", "kill"]
    assert len(timers.set) == 1

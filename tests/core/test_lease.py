from __future__ import annotations

import uuid
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron.core import errors, lease
from workron.core.ids import WorkerId
from workron.core.lease import HeartbeatVersion, WorkerHeartbeat

LEASE = 10.0
WORKER = WorkerId(1)
OTHER = WorkerId(2)


def heartbeat(
    worker: WorkerId, heartbeats: int, lease_seconds: float = LEASE, server: str = "one"
) -> WorkerHeartbeat:
    version = HeartbeatVersion(server, heartbeats)
    return WorkerHeartbeat(worker, version, lease_seconds, "name", uuid.UUID(int=1))


@dataclass(frozen=True)
class Observation:
    """One observation of a worker's counter, `gap` seconds after the one before."""

    gap: float
    heartbeats: int


def observe_all(observations: list[Observation]) -> list[tuple[float, bool]]:
    """Return the time of each observation, and whether the worker was to be reaped."""
    observer, now, results = lease.LeaseObserver(), 100.0, []
    for observation in observations:
        now += observation.gap
        results.append(
            (now, observer.observe(now, [heartbeat(WORKER, observation.heartbeats)]) != [])
        )
    return results


@st.composite
def histories(draw: st.DrawFn) -> list[Observation]:
    """Observations of a counter that does not change or rises between them."""
    observations = draw(
        st.lists(st.tuples(st.floats(0, 4), st.sampled_from([0, 0, 0, 0, 0, 0, 1])), max_size=60)
    )
    heartbeats, history = 1, []
    for gap, rise in observations:
        heartbeats += rise
        history.append(Observation(gap, heartbeats))
    return history


@given(histories())
def test_worker_is_reaped_only_when_its_counter_did_not_change_for_a_whole_lease(
    history: list[Observation],
) -> None:
    results = observe_all(history)
    since = 0.0
    for at, (now, is_reaped) in enumerate(results):
        has_risen = at == 0 or history[at].heartbeats != history[at - 1].heartbeats
        has_gap = at == 0 or now - results[at - 1][0] > LEASE / 4
        since = now if has_risen or has_gap else since

        assert is_reaped == (now - since >= LEASE)


def test_observer_returns_the_heartbeat_that_it_observed() -> None:
    observer = lease.LeaseObserver()
    results = [observer.observe(float(now), [heartbeat(WORKER, 7)]) for now in range(0, 12, 2)]

    assert results == [[], [], [], [], [], [heartbeat(WORKER, 7)]]


def test_observer_returns_a_worker_again_when_it_was_not_reaped() -> None:
    observations = [Observation(2.5, 1)] * 7

    assert [is_reaped for _, is_reaped in observe_all(observations)] == [False] * 4 + [True] * 3


def test_worker_is_not_reaped_when_it_is_observed_for_the_first_time() -> None:
    assert lease.LeaseObserver().observe(1e9, [heartbeat(WORKER, 1)]) == []


def test_worker_gets_a_whole_lease_again_when_observations_had_a_gap() -> None:
    before, outage, after = (
        [Observation(2.5, 1)] * 4,
        [Observation(60, 1)],
        [Observation(2.5, 1)] * 4,
    )

    reaped = [is_reaped for _, is_reaped in observe_all(before + outage + after)]

    assert reaped == [False] * 8 + [True]


def test_worker_gets_a_whole_lease_again_when_its_counter_rose() -> None:
    observations = [Observation(2.5, 1)] * 4 + [Observation(2.5, 2)] * 5

    assert [is_reaped for _, is_reaped in observe_all(observations)] == [False] * 8 + [True]


def test_worker_gets_a_whole_lease_again_when_the_server_has_restarted() -> None:
    observer, observations = lease.LeaseObserver(), ["one"] * 4 + ["other"] * 5

    results = [
        observer.observe(2.5 * at, [heartbeat(WORKER, 7, server=server)])
        for at, server in enumerate(observations)
    ]

    assert results == [[]] * 8 + [[heartbeat(WORKER, 7, server="other")]]


def test_worker_gets_a_whole_lease_again_when_one_observation_lacked_it() -> None:
    observer = lease.LeaseObserver()
    for now in (0.0, 2.5, 5.0):
        observer.observe(now, [heartbeat(WORKER, 1)])
    observer.observe(7.5, [])

    assert observer.observe(10.0, [heartbeat(WORKER, 1)]) == []


def test_each_worker_is_reaped_after_its_own_lease() -> None:
    observer = lease.LeaseObserver()
    results = [
        observer.observe(float(now), [heartbeat(WORKER, 1, 4.0), heartbeat(OTHER, 1, 40.0)])
        for now in range(6)
    ]

    assert results == [[], [], [], []] + [[heartbeat(WORKER, 1, 4.0)]] * 2


def test_worker_is_not_reaped_when_observations_are_too_rare_for_its_lease() -> None:
    observer = lease.LeaseObserver()
    results = [
        observer.observe(float(now), [heartbeat(WORKER, 1, 4.0), heartbeat(OTHER, 1, 8.0)])
        for now in range(0, 12, 2)
    ]

    assert results == [[], [], [], []] + [[heartbeat(OTHER, 1, 8.0)]] * 2


@dataclass(frozen=True)
class SentHeartbeat:
    """When a heartbeat was sent and stored, and whether the worker received the answer."""

    sent: float
    stored: float
    is_answered: bool


@st.composite
def sent_heartbeats(draw: st.DrawFn) -> list[SentHeartbeat]:
    """Heartbeats, each stored some time after it was sent, and answered or not."""
    heartbeats = [SentHeartbeat(0.0, 0.0, is_answered=True)]
    for _ in range(draw(st.integers(0, 12))):
        sent = heartbeats[-1].stored + draw(st.floats(0, 9))
        heartbeats.append(SentHeartbeat(sent, sent + draw(st.floats(0, 9)), draw(st.booleans())))
    return heartbeats


@given(sent_heartbeats(), st.floats(0.1, LEASE / 4), st.floats(0, LEASE / 4))
def test_deadline_of_a_worker_has_passed_when_it_is_reaped(
    heartbeats: list[SentHeartbeat], period: float, now: float
) -> None:
    observer = lease.LeaseObserver()
    while not observer.observe(
        now, [heartbeat(WORKER, sum(sent.stored <= now for sent in heartbeats))]
    ):
        now += period

    deadline = lease.LeaseDeadline(LEASE, 0.5, 0.0)
    for sent in heartbeats:
        if sent.is_answered and sent.stored <= now:
            deadline = deadline.acknowledge(sent.sent)
    assert deadline.has_passed(now)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_deadline_counts_from_the_latest_heartbeat_in_any_order_of_answers(
    sent: list[float],
) -> None:
    deadline = lease.LeaseDeadline(LEASE, 2.0, sent[0])
    for at in sent:
        deadline = deadline.acknowledge(at)

    assert deadline.at == max(sent) + 8.0


def test_deadline_has_passed_when_its_time_is_reached() -> None:
    deadline = lease.LeaseDeadline(LEASE, 2.0, 100.0)

    assert not deadline.has_passed(107.9)
    assert deadline.has_passed(108.0)


@pytest.mark.parametrize("margin", [10.0, 12.0, -1.0])
def test_deadline_is_rejected_when_the_margin_does_not_fit_the_lease(margin: float) -> None:
    with pytest.raises(errors.InputError, match="the lease of 10 s: it must be at least 0 s"):
        lease.LeaseDeadline(LEASE, margin, 0.0)

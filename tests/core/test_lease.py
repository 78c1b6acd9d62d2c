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
class Look:
    """One look of a worker's counter, `gap` seconds after the one before."""

    gap: float
    beats: int


def watched(looks: list[Look]) -> list[tuple[float, bool]]:
    """The time of each look, and whether the worker was to be reaped."""
    watch, now, answers = lease.LeaseObserver(), 100.0, []
    for look in looks:
        now += look.gap
        answers.append((now, watch.observe(now, [heartbeat(WORKER, look.beats)]) != []))
    return answers


@st.composite
def histories(draw: st.DrawFn) -> list[Look]:
    """Looks at any distance, of a counter that stands still or rises between them."""
    looks = draw(
        st.lists(st.tuples(st.floats(0, 4), st.sampled_from([0, 0, 0, 0, 0, 0, 1])), max_size=60)
    )
    beats, history = 1, []
    for gap, rise in looks:
        beats += rise
        history.append(Look(gap, beats))
    return history


@given(histories())
def test_watch_reaps_only_what_it_saw_stand_still_for_a_whole_lease(history: list[Look]) -> None:
    answers = watched(history)
    since = 0.0
    for at, (now, is_reaped) in enumerate(answers):
        has_moved = at == 0 or history[at].beats != history[at - 1].beats
        has_gap = at == 0 or now - answers[at - 1][0] > LEASE / 4
        since = now if has_moved or has_gap else since

        assert is_reaped == (now - since >= LEASE)


def test_watch_names_the_sign_that_it_saw() -> None:
    watch = lease.LeaseObserver()
    answers = [watch.observe(float(now), [heartbeat(WORKER, 7)]) for now in range(0, 12, 2)]

    assert answers == [[], [], [], [], [], [heartbeat(WORKER, 7)]]


def test_watch_names_a_worker_again_when_it_is_still_there() -> None:
    looks = [Look(2.5, 1)] * 7

    assert [is_reaped for _, is_reaped in watched(looks)] == [False] * 4 + [True] * 3


def test_watch_never_reaps_at_its_first_look() -> None:
    assert lease.LeaseObserver().observe(1e9, [heartbeat(WORKER, 1)]) == []


def test_watch_grants_a_whole_lease_anew_after_a_gap_without_looks() -> None:
    before, outage, after = [Look(2.5, 1)] * 4, [Look(60, 1)], [Look(2.5, 1)] * 4

    reaped = [is_reaped for _, is_reaped in watched(before + outage + after)]

    assert reaped == [False] * 8 + [True]


def test_watch_grants_a_whole_lease_anew_when_the_counter_moved() -> None:
    looks = [Look(2.5, 1)] * 4 + [Look(2.5, 2)] * 5

    assert [is_reaped for _, is_reaped in watched(looks)] == [False] * 8 + [True]


def test_watch_grants_a_whole_lease_anew_when_another_run_of_the_server_shows_the_counter() -> None:
    watch, looks = lease.LeaseObserver(), ["one"] * 4 + ["other"] * 5

    answers = [
        watch.observe(2.5 * at, [heartbeat(WORKER, 7, server=server)])
        for at, server in enumerate(looks)
    ]

    assert answers == [[]] * 8 + [[heartbeat(WORKER, 7, server="other")]]


def test_watch_forgets_a_worker_that_one_look_did_not_show() -> None:
    watch = lease.LeaseObserver()
    for now in (0.0, 2.5, 5.0):
        watch.observe(now, [heartbeat(WORKER, 1)])
    watch.observe(7.5, [])

    assert watch.observe(10.0, [heartbeat(WORKER, 1)]) == []


def test_watch_measures_each_worker_by_its_own_lease() -> None:
    watch = lease.LeaseObserver()
    answers = [
        watch.observe(float(now), [heartbeat(WORKER, 1, 4.0), heartbeat(OTHER, 1, 40.0)])
        for now in range(6)
    ]

    assert answers == [[], [], [], []] + [[heartbeat(WORKER, 1, 4.0)]] * 2


def test_watch_waits_anew_for_a_short_lease_when_looks_suit_only_a_long_one() -> None:
    watch = lease.LeaseObserver()
    answers = [
        watch.observe(float(now), [heartbeat(WORKER, 1, 4.0), heartbeat(OTHER, 1, 8.0)])
        for now in range(0, 12, 2)
    ]

    assert answers == [[], [], [], []] + [[heartbeat(OTHER, 1, 8.0)]] * 2


@dataclass(frozen=True)
class Beat:
    sent: float
    stored: float
    is_answered: bool


@st.composite
def lives(draw: st.DrawFn) -> list[Beat]:
    """Beats at any distance, each stored any time after it was sent, and answered or not."""
    beats = [Beat(0.0, 0.0, is_answered=True)]
    for _ in range(draw(st.integers(0, 12))):
        sent = beats[-1].stored + draw(st.floats(0, 9))
        beats.append(Beat(sent, sent + draw(st.floats(0, 9)), draw(st.booleans())))
    return beats


@given(lives(), st.floats(0.1, LEASE / 4), st.floats(0, LEASE / 4))
def test_a_worker_is_past_its_deadline_whenever_it_is_reaped(
    beats: list[Beat], period: float, now: float
) -> None:
    watch = lease.LeaseObserver()
    while not watch.observe(now, [heartbeat(WORKER, sum(beat.stored <= now for beat in beats))]):
        now += period

    deadline = lease.LeaseDeadline(LEASE, 0.5, 0.0)
    for beat in beats:
        if beat.is_answered and beat.stored <= now:
            deadline = deadline.acknowledge(beat.sent)
    assert deadline.has_passed(now)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_deadline_counts_from_the_latest_beat_whatever_the_order_of_answers(
    sent: list[float],
) -> None:
    deadline = lease.LeaseDeadline(LEASE, 2.0, sent[0])
    for at in sent:
        deadline = deadline.acknowledge(at)

    assert deadline.at == max(sent) + 8.0


def test_deadline_has_passed_from_its_moment_on() -> None:
    deadline = lease.LeaseDeadline(LEASE, 2.0, 100.0)

    assert not deadline.has_passed(107.9)
    assert deadline.has_passed(108.0)


@pytest.mark.parametrize("margin", [10.0, 12.0, -1.0])
def test_deadline_refuses_a_margin_that_does_not_fit_its_lease(margin: float) -> None:
    with pytest.raises(errors.InputError, match="the lease of 10 s: it must be at least 0 s"):
        lease.LeaseDeadline(LEASE, margin, 0.0)

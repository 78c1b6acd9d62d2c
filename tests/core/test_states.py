from __future__ import annotations

import pytest

from workron.core import states
from workron.core.states import Event, Reason, State


@pytest.mark.parametrize("end", sorted(states.TERMINAL_STATES))
def test_terminal_state_has_no_transition(end: State) -> None:
    assert not [event for state, event in states.TRANSITIONS if state is end]


@pytest.mark.parametrize("state", sorted(set(State) - states.TERMINAL_STATES))
def test_terminal_state_is_reachable_from_every_other_state(state: State) -> None:
    assert reachable(state) & states.TERMINAL_STATES


@pytest.mark.parametrize("state", sorted(set(State) - states.TERMINAL_STATES))
@pytest.mark.parametrize(
    ("event", "end"), [(Event.CANCEL, State.CANCELLED), (Event.EXPIRE, State.FAILED)]
)
def test_cancel_and_expire_end_a_job_in_every_state_that_is_not_terminal(
    state: State, event: Event, end: State
) -> None:
    assert states.TRANSITIONS[state, event] is end


def test_every_state_is_reachable_from_waiting() -> None:
    assert reachable(State.WAITING) == set(State)


def test_every_event_has_a_transition() -> None:
    assert {event for _, event in states.TRANSITIONS} == set(Event)


def test_claim_is_the_only_event_that_starts_a_job() -> None:
    assert [way for way, after in states.TRANSITIONS.items() if after is State.RUNNING] == [
        (State.QUEUED, Event.CLAIM)
    ]


def test_every_reason_belongs_to_exactly_one_state() -> None:
    given = [reason for reasons in states.REASONS.values() for reason in reasons]

    assert sorted(given) == sorted(Reason)


def reachable(state: State) -> set[State]:
    found = {state}
    while True:
        more = {
            after for (before, _), after in states.TRANSITIONS.items() if before in found
        } | found
        if more == found:
            return found
        found = more

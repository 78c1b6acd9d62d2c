from __future__ import annotations

import itertools

import pytest

from workron.core import errors, states
from workron.core.states import Event, Reason, State


@pytest.mark.parametrize(("state", "event"), [*itertools.product(State, Event)])
def test_advance_answers_as_the_table_says_and_refuses_all_else(state: State, event: Event) -> None:
    if (state, event) in states.TRANSITIONS:
        assert states.advance(state, event) is states.TRANSITIONS[state, event]
    else:
        with pytest.raises(errors.StateError):
            states.advance(state, event)


@pytest.mark.parametrize("end", sorted(states.TERMINAL_STATES))
def test_an_end_has_no_way_out(end: State) -> None:
    assert not [event for state, event in states.TRANSITIONS if state is end]


@pytest.mark.parametrize("state", sorted(set(State) - states.TERMINAL_STATES))
def test_a_state_that_is_no_end_can_be_left_for_an_end(state: State) -> None:
    assert reachable(state) & states.TERMINAL_STATES


@pytest.mark.parametrize("state", sorted(set(State) - states.TERMINAL_STATES))
@pytest.mark.parametrize(
    ("event", "end"), [(Event.CANCEL, State.CANCELLED), (Event.EXPIRE, State.FAILED)]
)
def test_cancel_and_deadline_end_a_job_wherever_it_stands(
    state: State, event: Event, end: State
) -> None:
    assert states.advance(state, event) is end


def test_every_state_is_reachable_from_waiting() -> None:
    assert reachable(State.WAITING) == set(State)


def test_every_event_happens_to_some_state() -> None:
    assert {event for _, event in states.TRANSITIONS} == set(Event)


def test_only_a_claim_starts_a_job() -> None:
    assert [way for way, after in states.TRANSITIONS.items() if after is State.RUNNING] == [
        (State.QUEUED, Event.CLAIM)
    ]


def test_every_reason_belongs_to_exactly_one_state() -> None:
    given = [reason for reasons in states.REASONS.values() for reason in reasons]

    assert sorted(given) == sorted(Reason)


def test_advance_says_what_a_job_can_take_when_it_refuses() -> None:
    with pytest.raises(errors.StateError) as caught:
        states.advance(State.QUEUED, Event.SUCCEED)

    assert str(caught.value) == (
        "a job that is Queued cannot take 'succeed'; it can take cancel, claim, expire, hold"
    )


def test_advance_says_that_a_job_has_ended_when_it_has() -> None:
    with pytest.raises(errors.StateError, match="nothing: it has ended"):
        states.advance(State.SUCCEEDED, Event.CANCEL)


def reachable(state: State) -> set[State]:
    found = {state}
    while True:
        more = {
            after for (before, _), after in states.TRANSITIONS.items() if before in found
        } | found
        if more == found:
            return found
        found = more

from __future__ import annotations

import itertools

import pytest

from workron.core import states, verdict
from workron.core.states import Reason, State
from workron.core.verdict import Condition, Verdict

ENDS = [
    (State.SUCCEEDED, None),
    *((State.FAILED, reason) for reason in sorted(states.REASONS[State.FAILED])),
    (State.CANCELLED, None),
    *((State.SKIPPED, reason) for reason in sorted(states.REASONS[State.SKIPPED])),
]
SKIPPED = State.SKIPPED


@pytest.mark.parametrize(("condition", "end"), [*itertools.product(Condition, ENDS)])
def test_every_end_has_a_verdict_under_every_condition(
    condition: Condition, end: tuple[State, Reason | None]
) -> None:
    assert verdict.evaluate(condition, *end) in Verdict


@pytest.mark.parametrize(
    ("state", "reason", "when_succeeded", "when_failed"),
    [
        (State.SUCCEEDED, None, Verdict.GO, Verdict.NOT_NEEDED),
        (State.FAILED, Reason.EXIT_CODE, Verdict.UPSTREAM_FAILED, Verdict.GO),
        (State.CANCELLED, None, Verdict.UPSTREAM_CANCELLED, Verdict.NOT_NEEDED),
        (SKIPPED, Reason.UPSTREAM_FAILED, Verdict.UPSTREAM_FAILED, Verdict.UPSTREAM_FAILED),
        (SKIPPED, Reason.UPSTREAM_CANCELLED, *[Verdict.UPSTREAM_CANCELLED] * 2),
        (SKIPPED, Reason.NOT_NEEDED, Verdict.NOT_NEEDED, Verdict.NOT_NEEDED),
    ],
)
def test_verdict_on_an_upstream_depends_on_its_end(
    state: State, reason: Reason | None, when_succeeded: Verdict, when_failed: Verdict
) -> None:
    assert verdict.evaluate(Condition.SUCCEEDED, state, reason) is when_succeeded
    assert verdict.evaluate(Condition.FAILED, state, reason) is when_failed
    assert verdict.evaluate(Condition.FINISHED, state, reason) is Verdict.GO


@pytest.mark.parametrize(
    ("condition", "state", "reason", "expected"),
    [
        (Condition.MEMBER, State.FAILED, Reason.TIMEOUT, Verdict.FAILED),
        (Condition.MEMBER, State.CANCELLED, None, Verdict.CANCELLED),
        (Condition.MEMBER, SKIPPED, Reason.NOT_NEEDED, Verdict.NOT_NEEDED),
        (Condition.TASK, State.FAILED, Reason.MEMBER_FAILED, Verdict.FAILED),
        (Condition.TASK, State.CANCELLED, None, Verdict.CANCELLED),
        (Condition.TASK, SKIPPED, Reason.UPSTREAM_FAILED, Verdict.GO),
        (Condition.ALLOWED_TASK, State.FAILED, Reason.EXIT_CODE, Verdict.GO),
        (Condition.ALLOWED_TASK, State.CANCELLED, None, Verdict.CANCELLED),
    ],
)
def test_verdict_on_a_job_of_a_group_depends_on_its_end(
    condition: Condition, state: State, reason: Reason | None, expected: Verdict
) -> None:
    assert verdict.evaluate(condition, state, reason) is expected


@pytest.mark.parametrize("condition", Condition)
def test_success_passes_unless_the_condition_is_a_failure(condition: Condition) -> None:
    expected = Verdict.NOT_NEEDED if condition is Condition.FAILED else Verdict.GO

    assert verdict.evaluate(condition, State.SUCCEEDED, None) is expected


@pytest.mark.parametrize("gravest", Verdict)
def test_end_of_every_verdict_is_in_the_table_of_states(gravest: Verdict) -> None:
    state, reason = verdict.END_STATES[gravest]

    assert state in states.TERMINAL_STATES
    assert reason is None or reason in states.REASONS[state]

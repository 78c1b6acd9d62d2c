"""The SQL functions agree with the rules of the core, for all arguments."""

import itertools
import re
import sqlite3

import pytest

from workron.core import verdict
from workron.core.states import REASONS, TERMINAL_STATES, State
from workron.core.verdict import Condition, Verdict
from workron.store.sqlite import connection

_ENDS = [(end, reason) for end in TERMINAL_STATES for reason in REASONS.get(end, [None])]


@pytest.mark.parametrize("condition", Condition)
def test_evaluate_in_sql_agrees_with_the_core(
    bare: sqlite3.Connection, condition: Condition
) -> None:
    for state, reason in _ENDS:
        (found,) = bare.execute("SELECT evaluate(?, ?, ?)", (condition, state, reason)).fetchone()
        assert Verdict(found) is verdict.evaluate(condition, state, reason)


@pytest.mark.parametrize("gravest", Verdict)
def test_end_state_in_sql_agrees_with_the_core(bare: sqlite3.Connection, gravest: Verdict) -> None:
    found = bare.execute("SELECT end_state(?), end_reason(?)", (gravest, gravest))
    assert tuple(found.fetchone()) == verdict.END_STATES[gravest]


def test_every_end_state_can_be_stored(bare: sqlite3.Connection) -> None:
    for job, (state, reason) in enumerate(itertools.chain(_ENDS, verdict.END_STATES.values())):
        bare.execute(
            "INSERT INTO done (job, state, reason, finished_at, attempts, failures, losses)"
            " VALUES (?, ?, ?, 0, 0, 0, 0)",
            (job, state, reason),
        )


def test_report_accepts_exactly_the_failure_reasons() -> None:
    (reasons,) = re.findall(
        r"reason IN \(([^)]*)\)", connection.statement_text("scratch.attempt_report")
    )
    assert set(re.findall(r"'(\w+)'", reasons)) == REASONS[State.FAILED]


def test_verdict_go_is_zero() -> None:
    assert Verdict.GO.value == min(Verdict).value == 0

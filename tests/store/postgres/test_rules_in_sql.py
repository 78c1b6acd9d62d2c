"""Rules that are written in SQL and in `workron.core` agree."""

import itertools
import pathlib
import re

import asyncpg
import pytest

from workron.core import payloads, states, verdict
from workron.core.states import State
from workron.core.verdict import Condition
from workron.store.postgres import functions


def _ends() -> list[tuple[State, states.Reason | None]]:
    """List every end state with every reason that it can have."""
    return [
        (state, reason)
        for state in sorted(states.TERMINAL_STATES)
        for reason in sorted(states.REASONS.get(state, {None}), key=str)
    ]


async def test_ends_have_the_same_verdict_in_sql_as_in_the_core(fresh_database: str) -> None:
    connection = await asyncpg.connect(fresh_database)
    for condition, (state, reason) in itertools.product(Condition, _ends()):
        weight = await connection.fetchval(
            "SELECT workron.evaluate($1, $2, $3)", condition, state, reason
        )
        assert weight == verdict.evaluate(condition, state, reason), (condition, state, reason)
    await connection.close()


def test_verdicts_have_the_same_outcome_in_sql_as_in_the_core() -> None:
    lists = re.findall(
        r"ARRAY\[([^\]]*)\]\)\[verdict \+ 1\]", functions.function_sources()["resolve_waiting"]
    )
    found, reasons = (
        [None if item.strip() == "NULL" else item.strip().strip("'") for item in items.split(",")]
        for items in lists
    )
    outcomes = [verdict.END_STATES[one] for one in sorted(verdict.Verdict)]
    assert list(zip(found, reasons, strict=True)) == outcomes


def test_cancelled_runs_end_with_the_verdict_of_a_cancel() -> None:
    found = re.findall(
        r"WHEN cancelled THEN greatest\(verdict, (\d+)\)",
        functions.function_sources()["resolve_waiting"],
    )
    assert found == [str(int(verdict.Verdict.CANCELLED))]


def test_failures_that_are_allowed_are_the_verdicts_of_failed_members() -> None:
    found = set(
        re.findall(
            r"verdict (?:NOT )?IN \((\d), (\d)\)", functions.function_sources()["evaluate_array"]
        )
    )
    allowed = (verdict.Verdict.UPSTREAM_FAILED, verdict.Verdict.FAILED)
    assert found == {tuple(str(int(one)) for one in allowed)}


async def _values(dsn: str, domain: str) -> set[str]:
    """Read the values that a domain allows from the catalog."""
    connection = await asyncpg.connect(dsn)
    check = await connection.fetchval(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE contypid = format('workron.%s', $1::text)::regtype",
        domain,
    )
    await connection.close()
    return set(re.findall(r"'(\w+)'", check))


async def test_end_states_of_the_tables_are_those_of_the_core(fresh_database: str) -> None:
    assert await _values(fresh_database, "end_state") == set(states.TERMINAL_STATES)


@pytest.mark.parametrize(
    ("domain", "state"), [("failure_reason", State.FAILED), ("skip_reason", State.SKIPPED)]
)
async def test_reasons_of_the_tables_are_those_of_the_core(
    fresh_database: str, domain: str, state: State
) -> None:
    assert await _values(fresh_database, domain) == states.REASONS[state]


def test_bound_on_inputs_is_that_of_the_core() -> None:
    for verb in ("job_inputs", "result_size"):
        bounds = re.findall(r"[<>]=? (\d{5,})", functions.function_sources()[verb])
        assert set(bounds) == {str(payloads.MAX_INPUT_BYTES)}


def test_every_guard_in_the_sql_is_removed_by_a_test() -> None:
    text = "".join(functions.function_sources().values())
    tests = "".join(file.read_text() for file in pathlib.Path(__file__).parent.glob("test_race_*"))
    guards = set(re.findall(r"-- guard: (\w+)", text))
    assert guards == set(re.findall(r'stage\.without\("(\w+)"\)', tests))

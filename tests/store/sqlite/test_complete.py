"""complete: reports that SQLite cannot store, and their error messages."""

from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import mint, mint_boot, report_on
from workron.core.states import Reason, State
from workron.store.sqlite.store import SqliteStore
from workron.store.types import ClaimedJob, Outcome, Registration, ReportResult, Session


@pytest.fixture
async def session(store: SqliteStore) -> Session:
    token = await store.ensure_pool(plans.NAMESPACE, "default")
    return await store.register(Registration(token, "worker", mint_boot(), slots=1))


async def _claim(store: SqliteStore, session: Session, count: int) -> list[ClaimedJob]:
    await store.submit([plans.array(count)])
    return list(await store.claim(session.key, mint(count)))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"result": "\ud800"}, "surrogate"),
    ({"result": float("inf")}, "JSON"),
    ({"result": object()}, "JSON serializable"),
    ({"result": {"a\0": 1}}, "has a NUL"),
    ({"message": "a\0b"}, "message has no NUL"),
    ({"exit_code": 2**63}, "too large"),
    ({"outcome": Outcome.FAILED, "reason": None}, "a failure has a reason"),
    ({"outcome": Outcome.RETRY, "delay_seconds": float("inf")}, "infinity"),
]


@pytest.mark.parametrize(("about", "why"), BAD)
async def test_invalid_report_ends_only_its_job_and_is_explained(
    store: SqliteStore, session: Session, about: dict[str, Any], why: str
) -> None:
    one, odd, two = await _claim(store, session, 3)
    ends = [
        report_on(one),
        report_on(odd, **{"outcome": Outcome.SUCCEEDED} | about),
        report_on(two),
    ]
    completed = await store.complete(session.key, ends)
    assert list(completed.answers) == [ReportResult.ACCEPTED] * 3
    rows = {row.job: row for row in await store.list_jobs((await store.list_runs())[0].run)}
    assert rows[one.job].state is rows[two.job].state is State.SUCCEEDED
    assert (rows[odd.job].state, rows[odd.job].reason) == (State.FAILED, Reason.RESULT_REFUSED)
    assert why in (rows[odd.job].message or "")


@pytest.mark.parametrize("text", ["\\u0000", "\\\\u0000", "a\\", "\\"])
async def test_backslashes_are_not_mistaken_for_nul(
    store: SqliteStore, session: Session, text: str
) -> None:
    (claimed,) = await _claim(store, session, 1)
    await store.complete(session.key, [report_on(claimed, result=text)])
    assert await store.read_result(claimed.job) == text


async def test_invalid_report_on_a_stale_claim_is_stale(
    store: SqliteStore, session: Session
) -> None:
    (claimed,) = await _claim(store, session, 1)
    await store.release(session.key, [claimed.ref])
    completed = await store.complete(session.key, [report_on(claimed, message="a\0b")])
    assert list(completed.answers) == [ReportResult.STALE]

"""Notifications between stores on one database, which only save waiting for the next poll."""

import asyncio
import random

import asyncpg
import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import mint, mint_boot, report_on
from workron.store.postgres.notify import Notifier
from workron.store.postgres.pool import open_pool
from workron.store.postgres.store import PostgresStore
from workron.store.types import Registration

_LISTENERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND query LIKE 'LISTEN%'"
)


async def _open(url: str, **seconds: float) -> PostgresStore:
    """Open a store; `seconds` are pauses of its notifier."""
    rng = random.Random()
    database = await open_pool(url, rng=rng, connections=4)
    made = PostgresStore(database, await open_pool(url, rng=rng, connections=1), rng)
    made._notifier = Notifier(made._database, made._wakeup, **seconds)
    await made.listen()
    return made


async def _wait_for_work(store: PostgresStore) -> asyncio.Task[None]:
    """Let a store wait for longer than the test may take."""
    waiting = asyncio.create_task(store.wait_for_work(600.0))
    await asyncio.sleep(0)
    return waiting


async def test_store_is_notified_when_another_store_submits(fresh_database: str) -> None:
    listener, other = await _open(fresh_database), await _open(fresh_database)
    await listener.wait_for_work(0)
    waiting = await _wait_for_work(listener)
    await other.submit([plans.job()])
    await waiting
    await listener.close()
    await other.close()


async def test_store_is_notified_when_the_submitting_store_closes_at_once(
    fresh_database: str,
) -> None:
    listener, other = await _open(fresh_database), await _open(fresh_database)
    waiting = await _wait_for_work(listener)
    await other.submit([plans.job()])
    await other.close()
    await waiting
    await listener.close()


async def test_only_other_workers_are_woken_when_a_worker_reports(
    fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notifier, "_send", lambda _: asyncio.sleep(0))
    store = await _open(fresh_database)
    token = await store.ensure_pool(plans.NAMESPACE, "default")
    session = await store.register(Registration(token, "worker", mint_boot(), 1))
    await store.submit([plans.job()])
    [claimed] = await store.claim(session.key, mint())
    own = asyncio.create_task(store.wait_for_work(600.0, session.key))
    other = await _wait_for_work(store)
    await store.complete(session.key, [report_on(claimed)])
    await other
    assert not own.done()
    own.cancel()
    await store.close()


async def test_submission_notifies_in_its_own_commit(
    fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notifier, "notify", lambda _: None)
    listener, other = await _open(fresh_database), await _open(fresh_database)
    waiting = await _wait_for_work(listener)
    await other.submit([plans.job()])
    await waiting
    await listener.close()
    await other.close()


async def test_only_the_first_submission_notifies_in_its_commit_when_several_follow(
    fresh_database: str,
) -> None:
    ear = await asyncpg.connect(fresh_database)
    store = await _open(fresh_database, interval_seconds=600, last_seconds=0)
    rings: list[object] = []
    await ear.add_listener("workron", lambda *ring: rings.append(ring))
    for number in range(10):
        await store.submit([plans.job(f"job-{number}")])
    # Notifications that were sent before an answer arrive before it.
    await ear.execute("SELECT 1")
    assert len(rings) == 1
    await store.close()
    await ear.close()


async def test_store_is_notified_again_when_its_listener_was_disconnected(
    fresh_database: str,
) -> None:
    listener = await _open(fresh_database, reconnect_seconds=0)
    other = await _open(fresh_database)
    await other._database.fetch(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    )
    while await other._database.fetch_value(_LISTENERS) < 2:
        await asyncio.sleep(0)
    waiting = await _wait_for_work(listener)
    await other.submit([plans.job()])
    await waiting
    await listener.close()
    await other.close()


async def test_store_does_not_listen_when_a_pooler_answers_with_its_own_pid(
    fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncpg.Connection, "get_server_pid", lambda _: 1)
    store = await _open(fresh_database)
    assert await store._database.fetch_value(_LISTENERS) == 0
    await store.close()

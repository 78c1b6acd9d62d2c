"""wait_for_work: committed work wakes waiting workers."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import mint, mint_boot, report_on
from workron.store.sqlite.store import SqliteStore
from workron.store.types import ClaimedJob, Outcome, Registration, Session

Act = Coroutine[Any, Any, Any]

_NEVER = 3600.0


@pytest.fixture
async def session(store: SqliteStore) -> Session:
    token = await store.ensure_pool(plans.NAMESPACE, "default")
    return await store.register(Registration(token, "worker", mint_boot(), slots=1))


async def _claim(store: SqliteStore, session: Session) -> ClaimedJob:
    await store.submit([plans.dag(a=task(), b=task("a"))])
    (claimed,) = await store.claim(session.key, mint())
    return claimed


async def _complete(store: SqliteStore, session: Session) -> Act:
    claimed = await _claim(store, session)
    return store.complete(session.key, [report_on(claimed)])


async def _release(store: SqliteStore, session: Session) -> Act:
    claimed = await _claim(store, session)
    return store.release(session.key, [claimed.ref])


async def _leave(store: SqliteStore, session: Session) -> Act:
    await _claim(store, session)
    return store.deregister(session.key)


async def _reap(store: SqliteStore, session: Session) -> Act:
    await _claim(store, session)
    return store.reap(session.worker, version=None)


async def _promote(store: SqliteStore, session: Session) -> Act:
    claimed = await _claim(store, session)
    await store.complete(session.key, [report_on(claimed, Outcome.RETRY)])
    return store.promote(10)


async def _settle(store: SqliteStore, session: Session) -> Act:
    claimed = await _claim(store, session)
    await store.complete(session.key, [report_on(claimed, Outcome.FAILED)])
    return store.propagate(10)


async def _expire(store: SqliteStore, _: Session) -> Act:
    await store.submit([plans.job(deadline_seconds=0)])
    return store.expire(10)


async def _submit(store: SqliteStore, _: Session) -> Act:
    return store.submit([plans.job()])


async def _cancel(store: SqliteStore, _: Session) -> Act:
    (submitted,) = await store.submit([plans.job()])
    return store.cancel(submitted.run)


async def _resume(store: SqliteStore, _: Session) -> Act:
    (submitted,) = await store.submit([plans.job(is_suspended=True)])
    return store.resume(submitted.run)


STIRRING = [
    _complete,
    _release,
    _leave,
    _reap,
    _promote,
    _settle,
    _expire,
    _submit,
    _cancel,
    _resume,
]


@pytest.mark.parametrize("prepare", STIRRING)
async def test_wait_ends_when_a_method_made_work(
    store: SqliteStore,
    session: Session,
    prepare: Callable[[SqliteStore, Session], Awaitable[Act]],
) -> None:
    act = await prepare(store, session)
    waiting = asyncio.ensure_future(store.wait_for_work(_NEVER))
    await asyncio.sleep(0)
    await act
    await waiting


async def test_wait_continues_when_no_work_was_made(store: SqliteStore, session: Session) -> None:
    waiting = asyncio.ensure_future(store.wait_for_work(_NEVER))
    await asyncio.sleep(0)
    await store.heartbeat(session.key)
    await store.claim(session.key, mint())
    await store.complete(session.key, [], mint())
    assert await store.promote(10) == await store.propagate(10) == await store.expire(10) == 0
    await store.list_heartbeats()
    assert not waiting.done()
    waiting.cancel()


async def test_report_wakes_other_workers_only(store: SqliteStore, session: Session) -> None:
    own = asyncio.ensure_future(store.wait_for_work(_NEVER, session.key))
    other = asyncio.ensure_future(store.wait_for_work(_NEVER))
    await store.submit([plans.job()])
    await asyncio.gather(own, other)
    [claimed] = await store.claim(session.key, mint())
    own = asyncio.ensure_future(store.wait_for_work(_NEVER, session.key))
    other = asyncio.ensure_future(store.wait_for_work(_NEVER))
    await asyncio.sleep(0)
    await store.complete(session.key, [report_on(claimed)])
    await other
    assert not own.done()
    own.cancel()


async def test_wait_ends_after_its_timeout(store: SqliteStore) -> None:
    await store.wait_for_work(0.0)

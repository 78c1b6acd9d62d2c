"""`wait` returns when all runs have ended."""

import asyncio
import uuid

import pytest

from tests.scheduling.conftest import job, register_worker, submit, workflow
from workron.core import states
from workron.core.ids import ClaimId
from workron.core.plan import Kind
from workron.core.states import State
from workron.scheduling import wait
from workron.store.api import Store
from workron.store.types import AttemptReport, Outcome


async def test_wait_returns_when_the_last_run_has_ended(store: Store) -> None:
    runs = [await submit(store, job(name)) for name in ("a", "b")]
    waiting = asyncio.create_task(wait.wait(store, runs))
    await store.cancel(runs[0])
    assert not waiting.done()
    await store.cancel(runs[1])
    assert [row.state for row in await waiting] == [State.CANCELLED, State.CANCELLED]


async def test_wait_returns_at_once_when_the_run_has_ended(store: Store) -> None:
    run = await submit(store, job("a"))
    await store.cancel(run)
    [row] = await wait.wait(store, [run])
    assert row.state is State.CANCELLED


async def test_wait_returns_a_row_for_each_name_when_a_run_is_named_twice(store: Store) -> None:
    first, second = [await submit(store, job(name)) for name in ("a", "b")]
    for run in (first, second):
        await store.cancel(run)
    rows = await wait.wait(store, [second, first, second])
    assert [row.job for row in rows] == [second, first, second]


async def test_wait_continues_when_all_jobs_have_ended_and_the_workflow_has_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await submit(store, workflow("w", {"name": "many", "count": 1}))
    session = await register_worker(store)
    [claimed] = await store.claim(session.key, [ClaimId(uuid.uuid4())])
    await store.complete(session.key, [AttemptReport(claimed.job, *claimed.ref, Outcome.SUCCEEDED)])
    assert (await store.list_jobs(run))[0].state not in states.TERMINAL_STATES
    has_waited_once, wait_for_work = asyncio.Event(), store.wait_for_work

    async def note_wait(timeout_seconds: float) -> None:
        has_waited_once.set()
        await wait_for_work(timeout_seconds)

    monkeypatch.setattr(store, "wait_for_work", note_wait)
    waiting = asyncio.create_task(wait.wait(store, [run]))
    first_wait = asyncio.create_task(has_waited_once.wait())
    await asyncio.wait([waiting, first_wait], return_when=asyncio.FIRST_COMPLETED)
    assert not waiting.done()
    while await store.propagate(10):
        pass
    [row] = await waiting
    assert (row.kind, row.state) == (Kind.WORKFLOW, State.SUCCEEDED)

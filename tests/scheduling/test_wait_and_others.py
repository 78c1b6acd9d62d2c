"""The small use cases: wait, cancel, reap on proof, and loose ends."""

import asyncio
import uuid

import pytest

from tests.scheduling.conftest import hire, job, submit, workflow
from workron.core import errors, states
from workron.core.ids import ClaimId
from workron.core.lease import WorkerHeartbeat
from workron.core.plan import Kind
from workron.core.states import State
from workron.scheduling import maintainer, wait
from workron.scheduling import submit as submitting
from workron.scheduling.submit import (
    missing_upstream_notes,
    refuse_missing_upstreams,
)
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
    session = await hire(store)
    [claimed] = await store.claim(session.key, [ClaimId(uuid.uuid4())])
    await store.complete(session.key, [AttemptReport(claimed.job, *claimed.ref, Outcome.SUCCEEDED)])
    assert (await store.list_jobs(run))[0].state not in states.TERMINAL_STATES
    looked, wait_for_work = asyncio.Event(), store.wait_for_work

    async def tell(timeout_seconds: float) -> None:
        looked.set()
        await wait_for_work(timeout_seconds)

    monkeypatch.setattr(store, "wait_for_work", tell)
    waiting = asyncio.create_task(wait.wait(store, [run]))
    has_looked = asyncio.create_task(looked.wait())
    await asyncio.wait([waiting, has_looked], return_when=asyncio.FIRST_COMPLETED)
    assert not waiting.done()
    while await store.propagate(10):
        pass
    [row] = await waiting
    assert (row.kind, row.state) == (Kind.WORKFLOW, State.SUCCEEDED)


async def test_cancelled_workflow_ends_when_no_maintainer_runs(store: Store) -> None:
    run = await submit(store, workflow("w", {"name": "many", "count": 3}))
    [row] = await store.list_runs()
    await submitting.cancel(store, row)
    assert (await store.list_jobs(run))[0].state is State.CANCELLED


async def test_cancel_is_refused_when_the_run_has_ended(store: Store) -> None:
    await submit(store, job("a"))
    [run] = await store.list_runs()
    session = await hire(store)
    [claimed] = await store.claim(session.key, [ClaimId(uuid.uuid4())])
    await store.complete(session.key, [AttemptReport(claimed.job, *claimed.ref, Outcome.SUCCEEDED)])
    with pytest.raises(errors.StateError, match="Job 'a' has ended; it cannot be cancelled"):
        await submitting.cancel(store, run)


async def test_claims_are_requeued_when_a_worker_is_proven_dead(
    store: Store,
) -> None:
    run = await submit(store, job("a"))
    dead, _ = await hire(store, "dead"), await hire(store, "alive")
    await store.claim(dead.key, [ClaimId(uuid.uuid4())])

    async def is_dead(worker: WorkerHeartbeat) -> bool:
        return worker.name == "dead"

    assert [one.name for one in await maintainer.reap_proven(store, is_dead)] == ["dead"]
    assert (await store.list_jobs(run))[0].state is State.QUEUED
    assert [one.name for one in await store.list_heartbeats()] == ["alive"]


def test_upstream_is_not_missing_when_it_is_in_another_file() -> None:
    plans = [job("a", dependsOn=[{"name": "b"}]), job("b")]
    refuse_missing_upstreams(plans)


def test_upstream_is_missing_when_only_the_other_kind_has_its_name() -> None:
    plans = [job("a", dependsOn=[{"name": "b", "kind": "Workflow"}]), job("b")]
    with pytest.raises(errors.InputError, match=r"^Job 'a' depends on Workflow 'b', which is in"):
        refuse_missing_upstreams(plans)


def test_all_missing_upstreams_are_named_in_one_error() -> None:
    plans = [job("a", dependsOn=[{"name": "x"}]), job("s", suspend=True)]
    with pytest.raises(errors.InputError) as refused:
        refuse_missing_upstreams(plans)
    assert str(refused.value).count("\n") == 1


async def test_upstream_is_not_noted_when_the_store_has_it(store: Store) -> None:
    await submit(store, job("there"))
    plans = [job("a", dependsOn=[{"name": "there"}, {"name": "absent"}]), job("s", suspend=True)]
    assert await missing_upstream_notes(store, plans) == [
        "a waits for Job 'absent', which is not in the store yet",
        "s is suspended; to resume it, submit its file without `suspend: true`",
    ]

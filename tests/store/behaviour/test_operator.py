"""find_by_uid, list_owned, update_run; list_workers, pool_demand, grant_pool, revoke_pool."""

import uuid
from datetime import timedelta
from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, Worker, mint_boot
from workron.core import errors
from workron.core.plan import Kind
from workron.core.states import State
from workron.store import types
from workron.store.types import Outcome, PoolGrant, Registration, RunUpdate, Signal


def _wish(
    generation: int = 2,
    *,
    is_cancelled: bool = False,
    is_suspended: bool = False,
    priority: int = 0,
) -> RunUpdate:
    return RunUpdate(generation, is_cancelled, is_suspended, priority)


async def test_run_of_an_object_is_found_by_its_uid(harness: Harness) -> None:
    plan = plans.job(generation=3)
    run = await harness.submit(plan)
    began = harness.database.clock.now()
    other = plans.job("other")
    await harness.submit(other)
    uid = plan.identity.uid
    found = await harness.store.find_by_uid([uid, other.identity.uid, uuid.uuid4()])
    assert found.keys() == {uid}
    one = found[uid]
    assert (one.run, one.uid, one.generation, one.has_ended) == (run, uid, 3, False)
    assert (one.kind, one.namespace, one.name) == (Kind.JOB, plans.NAMESPACE, "job")
    assert one.submitted_at == began


async def test_ended_run_is_found_and_not_listed(harness: Harness, worker: Worker) -> None:
    plan = plans.job(generation=1)
    run = await harness.submit(plan)
    assert [one.run for one in await harness.store.list_owned(10)] == [run]
    await worker.run_all()
    assert (await harness.store.find_by_uid([plan.identity.uid]))[plan.identity.uid].has_ended
    assert not await harness.store.list_owned(10)


async def test_unfinished_runs_are_listed_in_pages(harness: Harness) -> None:
    runs = [await harness.submit(plans.job(f"job-{at}", generation=1)) for at in range(5)]
    await harness.submit(plans.job("of no cluster"))
    first = await harness.store.list_owned(3)
    rest = await harness.store.list_owned(3, after=first[-1].run)
    assert [one.run for one in (*first, *rest)] == runs


async def test_unfinished_runs_are_listed_in_every_state(harness: Harness, worker: Worker) -> None:
    about = {"generation": 1}
    ended = await harness.submit(plans.job("ended", generation=1))
    await worker.run_all()
    running = await harness.submit(plans.dag("running", about, a=task(), b=task("a", count=3)))
    await worker.claim_one()
    deferred = await harness.submit(plans.job("deferred", generation=1))
    await worker.end(await worker.claim_one(), Outcome.RETRY, delay_seconds=5)
    later = await harness.submit(plans.job("ended later", generation=1))
    await worker.end(await worker.claim_one())
    ready = await harness.submit(plans.dag("ready", about, work=task(count=3)))
    waiting = await harness.submit(plans.job("waiting", outside=[plans.outside("x")], generation=1))
    unfinished = [running, deferred, ready, waiting]
    assert [one.run for one in await harness.store.list_owned(10)] == unfinished
    assert [one.run for one in await harness.store.list_owned(10, after=ended)] == unfinished
    for at, run in enumerate(unfinished):
        found = await harness.store.list_owned(2, after=run)
        assert [one.run for one in found] == unfinished[at + 1 : at + 3]
    assert [one.run for one in await harness.store.list_owned(10, after=later)] == [ready, waiting]


async def test_priority_changes_in_every_state(harness: Harness, worker: Worker) -> None:
    flow = await harness.submit(
        plans.dag("flow", {"generation": 1}, a=task(), b=task("a"), c=task(), d=task())
    )
    claimed = await worker.claim_one()
    await worker.end(await worker.claim_one(), Outcome.RETRY, delay_seconds=5)
    await harness.submit(plans.job("other", priority=5))

    assert await harness.store.update_run(flow, _wish(priority=9))

    assert {row.priority for row in await harness.store.list_jobs(flow)} == {9}
    await worker.end(claimed)
    assert [(await worker.claim_one()).name for _ in range(3)] == ["b", "d", "other"]


async def test_update_suspends_and_resumes_a_run(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(generation=1))
    assert await harness.store.update_run(run, _wish(2, is_suspended=True))
    assert await harness.state(run) == "Waiting/Suspended"
    assert await harness.store.update_run(run, _wish(3))
    assert await harness.state(run) == "Queued"
    await worker.run_all()


async def test_cancelled_run_stays_cancelled(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag("flow", {"generation": 1}, a=task(), b=task("a")))
    claimed = await worker.claim_one()
    assert await harness.store.update_run(run, _wish(2, is_cancelled=True, priority=4))
    assert not await harness.store.update_run(run, _wish(3, is_suspended=True, priority=4))
    assert set((await harness.store.list_signals(run)).values()) == {Signal.CANCEL}
    await worker.end(claimed)
    await harness.propagate_all()
    assert await harness.state(run) == "Cancelled"


@pytest.mark.parametrize("generation", [1, 2])
async def test_older_generation_changes_nothing(harness: Harness, generation: int) -> None:
    run = await harness.submit(plans.job(generation=1))
    await harness.store.update_run(run, _wish(2, is_suspended=True))
    assert not await harness.store.update_run(run, _wish(generation))
    assert await harness.state(run) == "Waiting/Suspended"


async def test_generation_without_changes_is_recorded(harness: Harness) -> None:
    plan = plans.job(generation=1, priority=2)
    run = await harness.submit(plan)
    assert not await harness.store.update_run(run, _wish(7, priority=2))
    assert (await harness.store.find_by_uid([plan.identity.uid]))[plan.identity.uid].generation == 7


async def test_ended_run_is_not_updated(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(generation=1))
    await worker.run_all()
    assert not await harness.store.update_run(run, _wish(is_cancelled=True))
    assert await harness.state(run) == "Succeeded"


async def test_run_without_an_object_is_not_updated(harness: Harness) -> None:
    run = await harness.submit(plans.job())
    assert not await harness.store.update_run(run, _wish(is_suspended=True))
    assert await harness.state(run) == "Queued"


async def test_priority_and_suspend_are_updated_together(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(generation=1))
    await harness.store.update_run(run, _wish(2, is_suspended=True, priority=3))
    await harness.store.resume(run)
    row = await harness.row(run)
    assert (row.state, row.priority) == (State.QUEUED, 3)
    await worker.run_all()


async def test_first_failures_are_listed_without_groups(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task(count=2), c=task()))
    for claimed in await worker.claim(MANY):
        if claimed.name != "c":
            await worker.end(claimed, Outcome.FAILED, exit_code=4)
    await harness.propagate_all()
    found = await harness.store.list_failures(run, 2)
    assert [(one.name, one.index, one.exit_code) for one in found] == [("a", None, 4), ("b", 0, 4)]
    assert len(await harness.store.list_failures(run, 9)) == 3
    await worker.run_all()


_WORD = "open sesame"


def _admission(token: str = _WORD, **about: Any) -> PoolGrant:
    defaults = {"lease_seconds": 30.0, "password": None, "connections": 10}
    return PoolGrant(plans.NAMESPACE, "own", token, **defaults | about)


async def _enter(harness: Harness, token: str) -> types.Session:
    return await harness.store.register(Registration(token, "worker", mint_boot(), slots=2))


async def test_workers_are_listed_with_their_claims(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("one"), plans.job("two"))
    idle = await harness.worker("idle", pool="other")
    await worker.claim(2)
    await harness.store.drain(idle.session.worker)
    busy, other = await harness.store.list_workers()
    assert (busy.worker, busy.claims, busy.is_draining) == (worker.session.worker, 2, False)
    assert (busy.namespace, busy.pool, busy.name) == (plans.NAMESPACE, "default", "worker")
    assert (other.pool, other.claims, other.slots, other.is_draining) == ("other", 0, MANY, True)
    await worker.release(*await worker.claim(2))


async def test_deregistered_worker_is_not_listed(harness: Harness, worker: Worker) -> None:
    await harness.store.deregister(worker.session.key)
    assert not await harness.store.list_workers()


async def test_demand_is_the_number_of_ready_jobs_and_the_oldest_of_each_pool(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job("first"))
    first = harness.database.clock.now()
    await harness.advance(timedelta(seconds=5))
    await harness.submit(plans.dag(a=task(), b=task("a")))
    await harness.submit(plans.job("elsewhere", pool="other"))
    demand = await harness.store.pool_demand()
    assert demand.keys() == {(plans.NAMESPACE, "default"), (plans.NAMESPACE, "other")}
    found = demand[plans.NAMESPACE, "default"]
    assert (found.ready, found.oldest) == (2, first)
    await worker.claim_one()
    assert (await harness.store.pool_demand())[plans.NAMESPACE, "default"].oldest > first


async def test_worker_registers_with_a_granted_token(harness: Harness) -> None:
    admitted = await harness.store.grant_pool(_admission())
    assert admitted.url == harness.store.url
    session = await _enter(harness, _WORD)
    assert (session.namespace, session.pool) == (plans.NAMESPACE, "own")
    assert session.lease_seconds == 30


async def test_token_is_valid_for_a_year_from_its_last_grant(harness: Harness) -> None:
    await harness.store.grant_pool(_admission())
    await harness.advance(timedelta(days=300))
    await harness.store.grant_pool(_admission())
    await harness.advance(timedelta(days=300))
    await _enter(harness, _WORD)
    await harness.advance(timedelta(days=100))
    with pytest.raises(errors.TokenError):
        await _enter(harness, _WORD)


async def test_older_token_stays_valid_when_a_new_one_is_granted(harness: Harness) -> None:
    await harness.store.grant_pool(_admission("old"))
    await harness.store.grant_pool(_admission("new", lease_seconds=20.0))
    sessions = [await _enter(harness, token) for token in ("old", "new")]
    assert {session.lease_seconds for session in sessions} == {20.0}


async def test_revoked_pool_rejects_workers_and_keeps_its_jobs(harness: Harness) -> None:
    await harness.store.grant_pool(_admission())
    assert await harness.store.granted_pools() == {(plans.NAMESPACE, "own")}
    run = await harness.submit(plans.job(pool="own"))
    assert await harness.store.revoke_pool(plans.NAMESPACE, "own")
    assert await harness.store.granted_pools() == set()
    with pytest.raises(errors.TokenError):
        await _enter(harness, _WORD)
    assert await harness.counts(run) == {"Queued": 1}
    await harness.store.grant_pool(_admission())
    await _enter(harness, _WORD)


async def test_pool_is_not_revoked_when_it_has_a_worker(harness: Harness) -> None:
    await harness.store.grant_pool(_admission())
    session = await _enter(harness, _WORD)
    assert not await harness.store.revoke_pool(plans.NAMESPACE, "own")
    await harness.store.heartbeat(session.key)
    await harness.store.deregister(session.key)
    assert await harness.store.revoke_pool(plans.NAMESPACE, "own")


async def test_revoke_succeeds_when_the_pool_was_revoked_or_is_unknown(harness: Harness) -> None:
    for _ in range(2):
        assert await harness.store.revoke_pool(plans.NAMESPACE, "none")


async def test_token_of_ensure_pool_stays_valid_when_the_pool_is_revoked(harness: Harness) -> None:
    await harness.store.grant_pool(_admission())
    token = await harness.token("own")
    await harness.store.revoke_pool(plans.NAMESPACE, "own")
    await harness.store.register(Registration(token, "worker", mint_boot(), 1))

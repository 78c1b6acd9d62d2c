"""Calls whose answer was lost: when they are repeated, they find what they did."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY, Worker, mint, mint_boot, report_on
from tests.store.postgres.faulty_proxy import FaultyProxy
from workron.core import errors
from workron.core.ids import JobId
from workron.core.plan import Plan
from workron.store import types
from workron.store.postgres.store import PostgresStore
from workron.store.types import ReportResult

_T = TypeVar("_T")


async def _repeat(wire: FaultyProxy, statement: str, call: Callable[[], Awaitable[_T]]) -> _T:
    """Lose the answer to the first of two equal calls."""
    wire.lose_answer_to(statement)
    with pytest.raises(errors.StoreUnreachableError):
        await call()
    return await call()


async def _worker(store: PostgresStore, name: str = "worker") -> Worker:
    token = await store.ensure_pool(plans.NAMESPACE, "default")
    return Worker(store, await store.register(_registration(token, name)))


def _registration(token: str, name: str = "worker") -> types.Registration:
    return types.Registration(token, name, mint_boot(), slots=MANY)


async def _submit(store: PostgresStore, *wanted: Plan) -> JobId:
    return (await store.submit(wanted))[0].run


async def _stand(store: PostgresStore, run: JobId) -> str:
    return (await store.list_jobs(run))[0].state


async def test_submit_is_acknowledged_when_its_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    plan = plans.job()
    (known,) = await _repeat(wire, "COMMIT", lambda: remote.submit([plan]))
    assert not known.is_new
    assert [run.run for run in await remote.list_runs()] == [known.run]


async def test_registration_gives_the_same_session_when_its_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    token = await remote.ensure_pool(plans.NAMESPACE, "default")
    registration = _registration(token)
    session = await _repeat(wire, "workron.register", lambda: remote.register(registration))
    assert [one.worker for one in await remote.list_heartbeats()] == [session.worker]


async def test_claim_gives_the_same_job_when_its_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    await _submit(remote, plans.job("old"), plans.job("new"))
    worker, claims = await _worker(remote), mint()
    key = worker.session.key
    (claimed,) = await _repeat(wire, "workron.claim", lambda: remote.claim(key, claims))
    assert claimed.name == "old"
    assert [held.job for held in (await worker.heartbeat()).held] == [claimed.job]


async def test_end_is_answered_already_when_its_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    run = await _submit(remote, plans.job())
    worker = await _worker(remote)
    claimed = await worker.claim_one()
    answer = await _repeat(wire, "workron.complete", lambda: worker.end(claimed, result=1))
    assert answer is ReportResult.ALREADY
    assert await _stand(remote, run) == "Succeeded"
    assert await remote.read_result(claimed.job) == 1


async def test_end_gives_the_same_new_claim_when_its_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    await _submit(remote, plans.job("one"), plans.job("two"), plans.job("three"))
    worker, claims = await _worker(remote), mint()
    end = report_on(await worker.claim_one())
    completed = await _repeat(
        wire, "workron.complete", lambda: remote.complete(worker.session.key, [end], claims)
    )
    assert [one.name for one in completed.claimed] == ["two"]
    assert len((await worker.heartbeat()).held) == 1


async def test_retry_is_answered_already_when_its_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    run = await _submit(remote, plans.job())
    worker = await _worker(remote)
    claimed = await worker.claim_one()
    answer = await _repeat(wire, "workron.complete", lambda: worker.retry(claimed))
    assert answer is ReportResult.ALREADY
    (row,) = await remote.list_jobs(run)
    assert (row.reason, row.failures) == ("Backoff", 1)


async def test_release_is_answered_already_when_its_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    await _submit(remote, plans.job())
    worker = await _worker(remote)
    claimed = await worker.claim_one()
    answers = await _repeat(wire, "workron.release", lambda: worker.release(claimed))
    assert answers == [ReportResult.ALREADY]


async def test_release_is_answered_already_when_another_worker_has_the_job(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    await _submit(remote, plans.job())
    worker, other = await _worker(remote), await _worker(remote, "other")
    claimed = await worker.claim_one()
    wire.lose_answer_to("workron.release")
    with pytest.raises(errors.StoreUnreachableError):
        await worker.release(claimed)
    again = await other.claim_one()
    assert await worker.release(claimed) == [ReportResult.ALREADY]
    assert [held.claim for held in (await other.heartbeat()).held] == [again.claim]


async def test_output_is_stored_once_when_its_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    run = await _submit(remote, plans.job())
    worker = await _worker(remote)
    right, key = (await worker.claim_one()).ref, worker.session.key
    answer = await _repeat(
        wire, "workron.append_output", lambda: remote.append_output(key, right, 0, b"text")
    )
    assert answer is ReportResult.ALREADY
    assert await remote.read_output(run) == b"text"


async def test_heartbeat_counts_again_when_its_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    worker = await _worker(remote)
    await _repeat(wire, "workron.heartbeat", worker.heartbeat)
    assert [sighting.version.heartbeats for sighting in await remote.list_heartbeats()] == [2]


async def test_worker_is_deregistered_when_the_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    worker = await _worker(remote)
    await _repeat(wire, "workron.deregister", lambda: remote.deregister(worker.session.key))
    assert await remote.list_heartbeats() == []


@pytest.mark.parametrize("statement", ["UPDATE workron.run SET cancelled", "bulk_update_step"])
async def test_run_is_cancelled_when_the_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy, statement: str
) -> None:
    run = await _submit(remote, plans.array(3))
    wire.lose_answer_to(statement)
    with pytest.raises(errors.StoreUnreachableError):
        await remote.cancel(run)
    await remote.cancel(run)
    await _settle(remote)
    assert {row.state for row in await remote.list_jobs(run)} == {"Cancelled"}


@pytest.mark.parametrize("statement", ["UPDATE workron.run SET cancelled", "bulk_update_step"])
async def test_run_is_cancelled_by_the_maintainer_when_the_call_is_not_repeated(
    remote: PostgresStore, wire: FaultyProxy, statement: str
) -> None:
    run = await _submit(remote, plans.array(3))
    wire.lose_answer_to(statement)
    with pytest.raises(errors.StoreUnreachableError):
        await remote.cancel(run)
    await _settle(remote)
    assert {row.state for row in await remote.list_jobs(run)} == {"Cancelled"}


async def _settle(store: PostgresStore) -> None:
    while await store.propagate(MANY):
        pass


async def test_loss_is_counted_once_when_the_answer_of_reap_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    run = await _submit(remote, plans.job())
    worker = await _worker(remote)
    await worker.claim_one()
    (seen,) = await remote.list_heartbeats()
    again = await _repeat(
        wire, "workron.reap", lambda: remote.reap(seen.worker, version=seen.version)
    )
    assert not again.was_reaped
    (row,) = await remote.list_jobs(run)
    assert (row.state, row.losses) == ("Queued", 1)


async def test_maintainer_stays_elected_when_its_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    holder = mint_boot()
    assert await _repeat(wire, "workron.leader", lambda: remote.elect(holder, 10.0))
    assert not await remote.elect(mint_boot(), 10.0)


async def test_job_is_promoted_once_when_the_answer_was_lost(
    remote: PostgresStore, wire: FaultyProxy
) -> None:
    run = await _submit(remote, plans.job())
    worker = await _worker(remote)
    await worker.retry(await worker.claim_one(), delay_seconds=0)
    assert await _repeat(wire, "workron.promote", lambda: remote.promote(MANY)) == 0
    assert await _stand(remote, run) == "Queued"

"""register, heartbeat, drain, deregister."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import Worker, mint, mint_boot, report_on
from workron.core import errors
from workron.core.ids import SessionKey
from workron.store.types import Registration, ReportResult


async def test_token_is_rejected_when_it_is_unknown(harness: Harness) -> None:
    await harness.token()
    with pytest.raises(errors.TokenError, match="create a new one"):
        await harness.store.register(Registration("guess", "worker", mint_boot(), 1))
    assert not await harness.store.list_heartbeats()


async def test_older_tokens_stay_valid_when_another_is_created(harness: Harness) -> None:
    older = await harness.store.ensure_pool(plans.NAMESPACE, "default")
    newer = await harness.store.ensure_pool(plans.NAMESPACE, "default")
    assert newer != older
    for number, token in enumerate((older, newer)):
        await harness.store.register(Registration(token, f"w{number}", mint_boot(), 1))
    assert len(await harness.store.list_heartbeats()) == 2


async def test_token_is_rejected_when_it_has_expired(harness: Harness, worker: Worker) -> None:
    older = await harness.store.ensure_pool(plans.NAMESPACE, "default")
    await harness.advance(timedelta(days=800))
    newer = await harness.store.ensure_pool(plans.NAMESPACE, "default")
    with pytest.raises(errors.StoreError):
        await harness.store.register(Registration(older, "other", mint_boot(), 1))
    await harness.store.register(Registration(newer, "other", mint_boot(), 1))
    await worker.heartbeat()


async def test_token_is_valid_for_one_pool(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("large", pool="large"))
    await harness.token("large")
    assert not await worker.claim()


async def test_session_has_the_pool_of_its_token(harness: Harness) -> None:
    large = await harness.worker("one", pool="large", namespace="elsewhere")
    assert (large.session.namespace, large.session.pool) == ("elsewhere", "large")
    again = await harness.worker("one", pool="large", namespace="elsewhere")
    assert (again.session.namespace, again.session.pool) == ("elsewhere", "large")


async def test_session_has_the_lease_of_its_pool(worker: Worker) -> None:
    assert worker.session.lease_seconds == 60


async def test_lease_of_a_pool_applies_to_later_registrations(
    harness: Harness, worker: Worker
) -> None:
    await harness.store.ensure_pool(plans.NAMESPACE, "default", lease_seconds=30)
    await harness.store.ensure_pool(plans.NAMESPACE, "default")
    later = await harness.worker("later")
    assert (worker.session.lease_seconds, later.session.lease_seconds) == (60, 30)


async def test_worker_is_reaped_by_the_lease_of_its_registration(
    harness: Harness, worker: Worker
) -> None:
    await harness.store.ensure_pool(plans.NAMESPACE, "default", lease_seconds=3)
    [seen] = await harness.store.list_heartbeats()
    assert seen.lease_seconds == worker.session.lease_seconds == 60
    token = await harness.store.ensure_pool(plans.NAMESPACE, "default")
    again = Registration(token, seen.name, seen.boot, 1)
    assert (await harness.store.register(again)).lease_seconds == 60


async def test_draining_worker_completes_its_claims_and_claims_no_more(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.array(2))
    claimed = await worker.claim_one()
    assert await harness.store.drain(worker.session.worker)
    heartbeat = await worker.heartbeat()
    assert heartbeat.is_draining
    assert len(heartbeat.held) == 1
    assert not await worker.claim()
    completed = await worker.store.complete(worker.session.key, [report_on(claimed)], mint())
    assert (list(completed.answers), list(completed.claimed)) == ([ReportResult.ACCEPTED], [])
    assert await harness.counts(run) == {"Succeeded": 1, "Queued": 1}


async def test_drain_returns_false_when_the_worker_is_unknown(
    harness: Harness, worker: Worker
) -> None:
    await harness.reap(worker)
    assert not await harness.store.drain(worker.session.worker)


async def test_claims_are_kept_when_the_registration_is_repeated(harness: Harness) -> None:
    run = await harness.submit(plans.job())
    boot = mint_boot()
    first = await harness.worker(boot=boot)
    await first.claim_one()
    second = await harness.worker(boot=boot)
    assert second.session.worker == first.session.worker
    assert len(await harness.store.list_heartbeats()) == 1
    assert len((await second.heartbeat()).held) == 1
    assert await harness.state(run) == "Running"


async def test_claims_are_requeued_when_a_newer_boot_sends_a_heartbeat(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    again = await harness.worker()
    await again.heartbeat()
    row = await harness.row(run)
    assert (row.state, row.losses) == ("Queued", 1)
    with pytest.raises(errors.SessionError):
        await worker.heartbeat()
    assert (await again.claim_one()).job == run


async def test_claims_stay_when_a_newer_boot_only_registers(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    # A delayed copy of the registration of a boot that is dead by now.
    await harness.worker()
    assert await harness.state(run) == "Running"
    await worker.heartbeat()


async def test_newer_boot_keeps_its_claims_when_an_older_one_sends_a_late_heartbeat(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    newer = await harness.worker()
    await newer.claim_one()
    await worker.heartbeat()
    assert await harness.state(run) == "Running"
    await newer.heartbeat()
    with pytest.raises(errors.SessionError):
        await worker.heartbeat()


async def test_other_workers_keep_their_claims_when_a_newer_boot_sends_a_heartbeat(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    await (await harness.worker("other")).heartbeat()
    await (await harness.worker("worker", pool="large")).heartbeat()
    await (await harness.worker("worker", namespace="elsewhere")).heartbeat()
    assert await harness.state(run) == "Running"
    await worker.heartbeat()


async def test_sessions_have_different_keys(harness: Harness) -> None:
    one, two = await harness.worker("one"), await harness.worker("two")
    assert one.session.key != two.session.key
    assert one.session.worker != two.session.worker


async def test_heartbeat_lists_the_claims_of_the_worker(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.array(3))
    one, two = await worker.claim(2)
    heartbeat = await worker.heartbeat()
    assert {(held.job, held.ref, held.signal) for held in heartbeat.held} == {
        (one.job, one.ref, None),
        (two.job, two.ref, None),
    }
    assert not heartbeat.is_draining


async def test_heartbeat_lists_nothing_when_all_claims_have_ended(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.array(3))
    one, two, three = await worker.claim(3)
    await worker.end(one)
    await worker.release(two)
    await worker.retry(three)
    assert not (await worker.heartbeat()).held


async def test_heartbeat_has_the_same_database_for_all_workers(
    harness: Harness, worker: Worker
) -> None:
    first = (await worker.heartbeat()).database
    other = await harness.worker("other", store=await harness.open_another())
    assert first
    assert (await other.heartbeat()).database == (await worker.heartbeat()).database == first


async def test_heartbeat_is_rejected_when_the_session_is_unknown(harness: Harness) -> None:
    with pytest.raises(errors.SessionError):
        await harness.store.heartbeat(SessionKey(mint_boot()))


async def test_claims_are_released_when_the_worker_deregisters(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.array(2))
    await worker.claim(2)
    await worker.store.deregister(worker.session.key)
    rows = [row for row in await harness.store.list_jobs(run) if row.index is not None]
    assert {(row.state, row.failures, row.losses) for row in rows} == {("Queued", 0, 0)}
    assert not await harness.store.list_heartbeats()


async def test_deregistered_worker_is_removed(harness: Harness, worker: Worker) -> None:
    await worker.store.deregister(worker.session.key)
    with pytest.raises(errors.SessionError):
        await worker.heartbeat()
    await worker.store.deregister(worker.session.key)
    assert not await harness.store.list_heartbeats()


async def test_jobs_of_a_deregistered_worker_need_not_run_alone(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.array(2))
    await worker.claim(2)
    await worker.store.deregister(worker.session.key)
    assert len(await (await harness.worker("heir")).claim(2)) == 2

"""register, beat, leave: how a worker comes, lives and goes."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import Worker, end_of, mint, mint_boot
from workron.core import errors
from workron.core.ids import SessionKey
from workron.store.types import Registration, ReportResult


async def test_token_is_refused_when_it_is_not_the_pools(harness: Harness) -> None:
    await harness.token()
    with pytest.raises(errors.TokenError, match="create a new one"):
        await harness.store.register(Registration("guess", "worker", mint_boot(), 1))
    assert not await harness.store.list_heartbeats()


async def test_older_tokens_stay_good_when_one_more_is_given(harness: Harness) -> None:
    older = await harness.store.ensure_pool(plans.NAMESPACE, "default")
    newer = await harness.store.ensure_pool(plans.NAMESPACE, "default")
    assert newer != older
    for number, token in enumerate((older, newer)):
        await harness.store.register(Registration(token, f"w{number}", mint_boot(), 1))
    assert len(await harness.store.list_heartbeats()) == 2


async def test_token_is_refused_when_it_is_years_old(harness: Harness, worker: Worker) -> None:
    older = await harness.store.ensure_pool(plans.NAMESPACE, "default")
    await harness.advance(timedelta(days=800))
    newer = await harness.store.ensure_pool(plans.NAMESPACE, "default")
    with pytest.raises(errors.StoreError):
        await harness.store.register(Registration(older, "other", mint_boot(), 1))
    await harness.store.register(Registration(newer, "other", mint_boot(), 1))
    await worker.beat()


async def test_token_of_one_pool_opens_no_other(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("large", pool="large"))
    await harness.token("large")
    assert not await worker.claim()


async def test_session_tells_which_pool_its_token_admits_to(harness: Harness) -> None:
    large = await harness.worker("one", pool="large", namespace="elsewhere")
    assert (large.session.namespace, large.session.pool) == ("elsewhere", "large")
    again = await harness.worker("one", pool="large", namespace="elsewhere")
    assert (again.session.namespace, again.session.pool) == ("elsewhere", "large")


async def test_session_tells_the_lease_of_its_pool(worker: Worker) -> None:
    assert worker.session.lease_seconds == 60


async def test_lease_of_a_pool_is_for_those_who_register_after_it_was_set(
    harness: Harness, worker: Worker
) -> None:
    await harness.store.ensure_pool(plans.NAMESPACE, "default", lease_seconds=30)
    await harness.store.ensure_pool(plans.NAMESPACE, "default")
    later = await harness.worker("later")
    assert (worker.session.lease_seconds, later.session.lease_seconds) == (60, 30)


async def test_worker_is_given_up_by_the_lease_that_it_was_told(
    harness: Harness, worker: Worker
) -> None:
    await harness.store.ensure_pool(plans.NAMESPACE, "default", lease_seconds=3)
    [seen] = await harness.store.list_heartbeats()
    assert seen.lease_seconds == worker.session.lease_seconds == 60
    token = await harness.store.ensure_pool(plans.NAMESPACE, "default")
    again = Registration(token, seen.name, seen.boot, 1)
    assert (await harness.store.register(again)).lease_seconds == 60


async def test_draining_worker_ends_what_it_has_and_claims_no_more(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.array(2))
    claimed = await worker.claim_one()
    assert await harness.store.drain(worker.session.worker)
    beat = await worker.beat()
    assert beat.is_draining
    assert len(beat.held) == 1
    assert not await worker.claim()
    completed = await worker.store.complete(worker.session.key, [end_of(claimed)], mint())
    assert (list(completed.answers), list(completed.claimed)) == ([ReportResult.ACCEPTED], [])
    assert await harness.counts(run) == {"Succeeded": 1, "Queued": 1}


async def test_worker_that_is_not_there_cannot_be_drained(harness: Harness, worker: Worker) -> None:
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
    assert len((await second.beat()).held) == 1
    assert await harness.stand(run) == "Running"


async def test_claims_come_back_when_a_newer_boot_beats(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    again = await harness.worker()
    await again.beat()
    row = await harness.row(run)
    assert (row.state, row.losses) == ("Queued", 1)
    with pytest.raises(errors.SessionError):
        await worker.beat()
    assert (await again.claim_one()).job == run


async def test_nothing_comes_back_when_a_boot_only_registers(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    # The late copy of what a boot asked that is dead by now.
    await harness.worker()
    assert await harness.stand(run) == "Running"
    await worker.beat()


async def test_newer_boot_keeps_its_claims_when_the_first_beat_of_an_older_one_comes_late(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    newer = await harness.worker()
    await newer.claim_one()
    await worker.beat()
    assert await harness.stand(run) == "Running"
    await newer.beat()
    with pytest.raises(errors.SessionError):
        await worker.beat()


async def test_others_keep_their_claims_when_a_newer_boot_beats(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    await (await harness.worker("other")).beat()
    await (await harness.worker("worker", pool="large")).beat()
    await (await harness.worker("worker", namespace="elsewhere")).beat()
    assert await harness.stand(run) == "Running"
    await worker.beat()


async def test_sessions_have_keys_of_their_own(harness: Harness) -> None:
    one, two = await harness.worker("one"), await harness.worker("two")
    assert one.session.key != two.session.key
    assert one.session.worker != two.session.worker


async def test_beat_lists_what_the_worker_holds(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.array(3))
    one, two = await worker.claim(2)
    beat = await worker.beat()
    assert {(held.job, held.ref, held.signal) for held in beat.held} == {
        (one.job, one.ref, None),
        (two.job, two.ref, None),
    }
    assert not beat.is_draining


async def test_beat_lists_nothing_when_all_has_ended(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.array(3))
    one, two, three = await worker.claim(3)
    await worker.end(one)
    await worker.release(two)
    await worker.retry(three)
    assert not (await worker.beat()).held


async def test_beat_names_the_same_database_to_all(harness: Harness, worker: Worker) -> None:
    first = (await worker.beat()).database
    other = await harness.worker("other", store=await harness.another())
    assert first
    assert (await other.beat()).database == (await worker.beat()).database == first


async def test_beat_is_refused_when_nobody_registered(harness: Harness) -> None:
    with pytest.raises(errors.SessionError):
        await harness.store.heartbeat(SessionKey(mint_boot()))


async def test_claims_are_released_when_the_worker_leaves(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.array(2))
    await worker.claim(2)
    await worker.store.deregister(worker.session.key)
    rows = [row for row in await harness.store.list_jobs(run) if row.index is not None]
    assert {(row.state, row.failures, row.losses) for row in rows} == {("Queued", 0, 0)}
    assert not await harness.store.list_heartbeats()


async def test_left_worker_is_forgotten(harness: Harness, worker: Worker) -> None:
    await worker.store.deregister(worker.session.key)
    with pytest.raises(errors.SessionError):
        await worker.beat()
    await worker.store.deregister(worker.session.key)
    assert not await harness.store.list_heartbeats()


async def test_jobs_of_a_left_worker_are_not_tried_alone(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.array(2))
    await worker.claim(2)
    await worker.store.deregister(worker.session.key)
    assert len(await (await harness.worker("heir")).claim(2)) == 2

"""`overlap: Forbid`: a lost job waits until its worker's death is proven."""

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.core.ids import JobId


async def _lose(harness: Harness, worker: Worker) -> JobId:
    run = await harness.submit(plans.job(needs_proof=True))
    await worker.claim_one()
    await harness.reap(worker)
    return run


async def test_lost_job_waits_when_the_death_is_not_proven(
    harness: Harness, worker: Worker
) -> None:
    run = await _lose(harness, worker)
    assert await harness.state(run) == "Waiting/AwaitingProof"
    assert not await (await harness.worker("other")).claim()


async def test_lost_job_is_queued_at_once_when_the_death_is_proven(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job(needs_proof=True))
    await worker.claim_one()
    reaped = await harness.store.reap(worker.session.worker, version=None)
    assert list(reaped.requeued) == [run]
    assert await harness.state(run) == "Queued"


async def test_lost_job_is_queued_when_a_newer_boot_sends_a_heartbeat(
    harness: Harness, worker: Worker
) -> None:
    run = await _lose(harness, worker)
    again = await harness.worker()
    assert await harness.state(run) == "Waiting/AwaitingProof"
    await again.heartbeat()
    claimed = await again.claim_one()
    assert claimed.job == run
    assert (claimed.attempt, claimed.losses) == (2, 1)


async def test_lost_job_is_queued_when_the_proof_comes_later(
    harness: Harness, worker: Worker
) -> None:
    run = await _lose(harness, worker)
    reaped = await harness.store.reap(worker.session.worker, version=None)
    assert (reaped.was_reaped, list(reaped.requeued)) == (False, [run])
    assert await harness.state(run) == "Queued"
    again = await harness.store.reap(worker.session.worker, version=None)
    assert list(again.requeued) == []


async def test_proof_of_a_newer_boots_death_counts_for_the_older_one(
    harness: Harness, worker: Worker
) -> None:
    run = await _lose(harness, worker)
    newer = await harness.worker()
    reaped = await harness.store.reap(newer.session.worker, version=None)
    assert (reaped.was_reaped, list(reaped.requeued)) == (True, [run])
    assert await harness.state(run) == "Queued"


async def test_lost_job_waits_when_another_worker_sends_a_heartbeat(
    harness: Harness, worker: Worker
) -> None:
    run = await _lose(harness, worker)
    await (await harness.worker("other")).heartbeat()
    await (await harness.worker("worker", pool="large")).heartbeat()
    assert await harness.state(run) == "Waiting/AwaitingProof"


async def test_lost_job_waits_when_an_older_boot_is_proven_dead(
    harness: Harness, worker: Worker
) -> None:
    run = await _lose(harness, await harness.worker())
    await harness.store.reap(worker.session.worker, version=None)
    assert await harness.state(run) == "Waiting/AwaitingProof"


async def test_only_jobs_that_need_proof_wait_for_it(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(needs_proof=True), b=task()))
    await worker.claim(2)
    await harness.reap(worker)
    stands = await harness.states(run)
    assert (stands["a"], stands["b"]) == ("Waiting/AwaitingProof", "Queued")


async def test_released_job_needs_no_proof(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(needs_proof=True))
    await worker.release(await worker.claim_one())
    assert await harness.state(run) == "Queued"


async def test_job_without_proof_ends_when_cancelled(harness: Harness, worker: Worker) -> None:
    run = await _lose(harness, worker)
    await harness.store.cancel(run)
    assert await harness.state(run) == "Cancelled"
    await harness.worker()
    assert await harness.state(run) == "Cancelled"


async def test_job_waits_for_resume_and_proof_when_it_needs_both(
    harness: Harness, worker: Worker
) -> None:
    run = await _lose(harness, worker)
    await harness.store.suspend(run)
    await harness.store.resume(run)
    assert await harness.state(run) == "Waiting/AwaitingProof"
    await harness.store.suspend(run)
    again = await harness.worker()
    await again.heartbeat()
    assert not await again.claim()
    await harness.store.resume(run)
    assert (await again.claim_one()).job == run


async def test_job_fails_without_proof_when_it_was_lost_too_often(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job(needs_proof=True, max_losses=0))
    await worker.claim_one()
    await harness.reap(worker)
    assert await harness.state(run) == "Failed/WorkerLost"

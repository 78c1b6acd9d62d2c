"""promote: a deferred job is queued when it is due, not before."""

from datetime import timedelta

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker, report_on
from workron.store.types import Outcome

SECOND = timedelta(seconds=1)


async def test_retry_is_queued_when_it_is_due(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.retry(await worker.claim_one(), delay_seconds=10)
    await harness.advance(SECOND * 11)
    assert await harness.state(run) == "Waiting/Backoff"
    assert await harness.store.promote(10) == 1
    assert await harness.state(run) == "Queued"


async def test_retry_is_not_queued_before_it_is_due(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.retry(await worker.claim_one(), delay_seconds=10)
    await harness.advance(SECOND * 9)
    assert await harness.store.promote(10) == 0
    assert await harness.state(run) == "Waiting/Backoff"


async def test_scheduled_job_is_queued_at_its_start(harness: Harness, worker: Worker) -> None:
    start = harness.database.clock.now() + timedelta(hours=1)
    run = await harness.submit(plans.job(start_after=start))
    await harness.advance(timedelta(hours=1, seconds=1))
    await harness.promote()
    assert await harness.state(run) == "Queued"
    await worker.end(await worker.claim_one())


async def test_downstream_waits_for_its_start_when_its_upstreams_have_ended(
    harness: Harness, worker: Worker
) -> None:
    start = harness.database.clock.now() + timedelta(hours=1)
    run = await harness.submit(plans.dag(a=task(), b=task("a", start_after=start)))
    await worker.end(await worker.claim_one())
    assert await harness.state(run, "b") == "Waiting/Scheduled"
    await harness.advance(timedelta(hours=2))
    await harness.promote()
    assert await harness.state(run, "b") == "Queued"


async def test_downstream_is_queued_at_once_when_its_start_has_passed(
    harness: Harness, worker: Worker
) -> None:
    start = harness.database.clock.now() + timedelta(hours=1)
    run = await harness.submit(plans.dag(a=task(), b=task("a", start_after=start)))
    claimed = await worker.claim_one()
    await harness.advance(timedelta(hours=2))
    await worker.end(claimed)
    assert await harness.state(run, "b") == "Queued"


async def test_promote_moves_at_most_its_limit(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.array(5))
    ends = [report_on(one, Outcome.RETRY, delay_seconds=1) for one in await worker.claim(5)]
    await worker.store.complete(worker.session.key, ends)
    await harness.advance(SECOND * 2)
    assert 0 < await harness.store.promote(2) <= 2
    await harness.promote()
    assert await harness.counts(run) == {"Queued": 5}


async def test_promoted_job_keeps_its_place_in_the_queue(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("old", priority=1))
    await worker.retry(await worker.claim_one(), delay_seconds=1)
    await harness.submit(plans.job("new", priority=1))
    await harness.submit(plans.job("urgent", priority=2))
    await harness.advance(SECOND * 2)
    await harness.promote()
    assert [(await worker.claim_one()).name for _ in range(3)] == ["urgent", "old", "new"]

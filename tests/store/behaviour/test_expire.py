"""expire: a job past its deadline ends, wherever it is."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.store.types import Outcome, ReportResult, Signal

MINUTE = timedelta(minutes=1)


async def test_queued_job_fails_when_its_deadline_has_passed(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    await harness.advance(MINUTE * 2)
    assert await harness.store.expire(10) == 1
    assert await harness.stand(run) == "Failed/DeadlineExceeded"
    assert not await worker.claim()


async def test_job_goes_on_when_its_deadline_lies_ahead(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    await harness.advance(MINUTE / 2)
    assert await harness.store.expire(10) == 0
    await worker.run_all()
    await harness.advance(MINUTE * 2)
    await harness.expire()
    assert await harness.stand(run) == "Succeeded"


async def test_deadline_goes_with_the_end_of_its_job(harness: Harness, worker: Worker) -> None:
    a, b, c = (task(*needs, deadline_seconds=60) for needs in ((), ("a",), ("b",)))
    await harness.submit(plans.dag(a=a, b=b, c=c))
    cancelled = await harness.submit(plans.job(deadline_seconds=60))
    await harness.store.cancel(cancelled)
    await worker.run_all({"b": Outcome.FAILED})
    await harness.settle()
    await harness.advance(MINUTE * 2)
    assert await harness.store.expire(10) == 0


async def test_waiting_job_fails_when_its_deadline_has_passed(
    harness: Harness, worker: Worker
) -> None:
    plan = plans.dag(a=task(), b=task("a", deadline_seconds=60), c=task("b"))
    run = await harness.submit(plan)
    claimed = await worker.claim_one()
    await harness.advance(MINUTE * 2)
    await harness.expire()
    await harness.settle()
    stands = await harness.stands(run)
    assert (stands["b"], stands["c"]) == ("Failed/DeadlineExceeded", "Skipped/UpstreamFailed")
    await worker.end(claimed)
    await harness.settle()
    assert await harness.stand(run) == "Failed/MemberFailed"


async def test_deferred_job_fails_when_its_deadline_has_passed(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    await worker.retry(await worker.claim_one(), delay_seconds=600)
    await harness.advance(MINUTE * 2)
    await harness.expire()
    row = await harness.row(run)
    assert (row.state, row.reason, row.failures) == ("Failed", "DeadlineExceeded", 1)


async def test_suspended_job_fails_when_its_deadline_has_passed(harness: Harness) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60, is_suspended=True))
    await harness.advance(MINUTE * 2)
    await harness.expire()
    assert await harness.stand(run) == "Failed/DeadlineExceeded"


async def test_running_job_is_marked_when_its_deadline_has_passed(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    await worker.claim_one()
    await harness.advance(MINUTE * 2)
    await harness.expire()
    assert await harness.stand(run) == "Running"
    (held,) = (await worker.beat()).held
    assert held.signal is Signal.EXPIRE


@pytest.mark.parametrize("outcome", list(Outcome))
async def test_expired_job_fails_whatever_its_worker_reports(
    harness: Harness, worker: Worker, outcome: Outcome
) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    claimed = await worker.claim_one()
    await harness.advance(MINUTE * 2)
    await harness.expire()
    assert await worker.end(claimed, outcome) is ReportResult.ACCEPTED
    assert await harness.stand(run) == "Failed/DeadlineExceeded"


@pytest.mark.parametrize("verb", ["release", "reap"])
async def test_expired_job_fails_when_its_claim_is_taken_back(
    harness: Harness, worker: Worker, verb: str
) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    claimed = await worker.claim_one()
    await harness.advance(MINUTE * 2)
    await harness.expire()
    if verb == "release":
        await worker.release(claimed)
    else:
        await harness.reap(worker)
    assert await harness.stand(run) == "Failed/DeadlineExceeded"


async def test_cancel_outdoes_the_deadline(harness: Harness, worker: Worker) -> None:
    one = await harness.submit(plans.job("one", deadline_seconds=60))
    two = await harness.submit(plans.job("two", deadline_seconds=60))
    claimed = await worker.claim(2)
    await harness.store.cancel(one)
    await harness.advance(MINUTE * 2)
    await harness.expire()
    await harness.store.cancel(two)
    assert {held.signal for held in (await worker.beat()).held} == {Signal.CANCEL}
    for each in claimed:
        await worker.end(each)
    assert await harness.stand(one) == await harness.stand(two) == "Cancelled"


async def test_deadline_outdoes_hold(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    claimed = await worker.claim_one()
    await harness.store.suspend(run)
    await harness.advance(MINUTE * 2)
    await harness.expire()
    await harness.store.suspend(run)
    await worker.release(claimed)
    assert await harness.stand(run) == "Failed/DeadlineExceeded"


async def test_expire_ends_no_more_than_its_limit(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(count=5, deadline_seconds=60)))
    await harness.advance(MINUTE * 2)
    assert 0 < await harness.store.expire(2) <= 2
    await harness.expire()
    assert await harness.counts(run) == {"Failed/DeadlineExceeded": 5}


async def test_expire_ends_when_only_running_jobs_are_left(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.dag(a=task(count=3, deadline_seconds=60)))
    await worker.claim(3)
    await harness.advance(MINUTE * 2)
    await harness.expire()
    assert await harness.store.expire(10) == 0

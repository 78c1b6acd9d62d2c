"""expire: a job past its deadline ends in any state."""

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
    assert await harness.state(run) == "Failed/DeadlineExceeded"
    assert not await worker.claim()


async def test_job_continues_when_its_deadline_is_in_the_future(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    await harness.advance(MINUTE / 2)
    assert await harness.store.expire(10) == 0
    await worker.run_all()
    await harness.advance(MINUTE * 2)
    await harness.expire()
    assert await harness.state(run) == "Succeeded"


async def test_deadline_is_removed_when_its_job_ends(harness: Harness, worker: Worker) -> None:
    a, b, c = (task(*needs, deadline_seconds=60) for needs in ((), ("a",), ("b",)))
    await harness.submit(plans.dag(a=a, b=b, c=c))
    cancelled = await harness.submit(plans.job(deadline_seconds=60))
    await harness.store.cancel(cancelled)
    await worker.run_all({"b": Outcome.FAILED})
    await harness.propagate_all()
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
    await harness.propagate_all()
    stands = await harness.states(run)
    assert (stands["b"], stands["c"]) == ("Failed/DeadlineExceeded", "Skipped/UpstreamFailed")
    await worker.end(claimed)
    await harness.propagate_all()
    assert await harness.state(run) == "Failed/MemberFailed"


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
    assert await harness.state(run) == "Failed/DeadlineExceeded"


async def test_running_job_is_signalled_when_its_deadline_has_passed(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    await worker.claim_one()
    await harness.advance(MINUTE * 2)
    await harness.expire()
    assert await harness.state(run) == "Running"
    (held,) = (await worker.heartbeat()).held
    assert held.signal is Signal.EXPIRE


@pytest.mark.parametrize("outcome", list(Outcome))
async def test_expired_job_fails_when_its_worker_reports_another_end(
    harness: Harness, worker: Worker, outcome: Outcome
) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    claimed = await worker.claim_one()
    await harness.advance(MINUTE * 2)
    await harness.expire()
    assert await worker.end(claimed, outcome) is ReportResult.ACCEPTED
    assert await harness.state(run) == "Failed/DeadlineExceeded"


@pytest.mark.parametrize("verb", ["release", "reap"])
async def test_expired_job_fails_when_its_worker_is_reaped(
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
    assert await harness.state(run) == "Failed/DeadlineExceeded"


async def test_cancel_overrides_the_deadline(harness: Harness, worker: Worker) -> None:
    one = await harness.submit(plans.job("one", deadline_seconds=60))
    two = await harness.submit(plans.job("two", deadline_seconds=60))
    claimed = await worker.claim(2)
    await harness.store.cancel(one)
    await harness.advance(MINUTE * 2)
    await harness.expire()
    await harness.store.cancel(two)
    assert {held.signal for held in (await worker.heartbeat()).held} == {Signal.CANCEL}
    for each in claimed:
        await worker.end(each)
    assert await harness.state(one) == await harness.state(two) == "Cancelled"


async def test_deadline_overrides_suspend(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(deadline_seconds=60))
    claimed = await worker.claim_one()
    await harness.store.suspend(run)
    await harness.advance(MINUTE * 2)
    await harness.expire()
    await harness.store.suspend(run)
    await worker.release(claimed)
    assert await harness.state(run) == "Failed/DeadlineExceeded"


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

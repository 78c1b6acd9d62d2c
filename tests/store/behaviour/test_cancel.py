"""cancel: after the answer nothing of the run starts any more."""

import asyncio
from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.core.verdict import Condition
from workron.store.types import Outcome, ReportResult, Signal


async def test_queued_job_ends_when_cancelled(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    assert await harness.store.cancel(run)
    assert await harness.stand(run) == "Cancelled"
    assert not await worker.claim()


async def test_waiting_and_queued_tasks_end_when_cancelled(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task(count=2)))
    assert await harness.store.cancel(run)
    await harness.settle()
    assert set((await harness.stands(run)).values()) == {"Cancelled"}


async def test_deferred_job_ends_when_cancelled(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.retry(await worker.claim_one())
    assert await harness.store.cancel(run)
    await harness.advance(timedelta(minutes=1))
    await harness.promote()
    assert await harness.stand(run) == "Cancelled"


async def test_scheduled_job_ends_when_cancelled(harness: Harness) -> None:
    start = harness.ground.clock.now() + timedelta(hours=1)
    run = await harness.submit(plans.job(start_after=start))
    assert await harness.store.cancel(run)
    assert await harness.stand(run) == "Cancelled"


async def test_suspended_job_ends_when_cancelled(harness: Harness) -> None:
    run = await harness.submit(plans.job(is_suspended=True))
    assert await harness.store.cancel(run)
    assert await harness.stand(run) == "Cancelled"


async def test_running_job_is_marked_when_cancelled(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    assert await harness.store.cancel(run)
    assert await harness.stand(run) == "Running"
    (held,) = (await worker.beat()).held
    assert (held.claim, held.signal) == (claimed.claim, Signal.CANCEL)


@pytest.mark.parametrize("outcome", list(Outcome))
async def test_marked_job_ends_cancelled_whatever_its_worker_reports(
    harness: Harness, worker: Worker, outcome: Outcome
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.store.cancel(run)
    assert await worker.end(claimed, outcome) is ReportResult.ACCEPTED
    assert await harness.stand(run) == "Cancelled"


async def test_marked_job_ends_cancelled_when_released(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.store.cancel(run)
    await worker.release(claimed)
    assert await harness.stand(run) == "Cancelled"


async def test_marked_job_ends_cancelled_when_its_worker_is_reaped(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    await harness.store.cancel(run)
    reaped = await harness.reap(worker)
    assert await harness.stand(run) == "Cancelled"
    assert reaped.was_reaped
    assert (list(reaped.requeued), list(reaped.failed)) == ([], [])


async def test_workflow_ends_when_the_last_running_task_has(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task(), c=task("a", "b")))
    claimed = await worker.claim_by_name()
    assert await harness.store.cancel(run)
    await worker.end(claimed["a"])
    await harness.settle()
    assert await harness.stands(run) == {
        "flow": "Running",
        "a": "Cancelled",
        "b": "Running",
        "c": "Cancelled",
    }
    await worker.end(claimed["b"])
    await harness.settle()
    assert set((await harness.stands(run)).values()) == {"Cancelled"}


async def test_ended_tasks_keep_their_end_when_the_rest_is_cancelled(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a")))
    await worker.end(await worker.claim_one())
    assert await harness.store.cancel(run)
    await harness.settle()
    stands = await harness.stands(run)
    assert stands == {"flow": "Cancelled", "a": "Succeeded", "b": "Cancelled"}


async def test_nothing_of_a_cancelled_root_becomes_ready(harness: Harness, worker: Worker) -> None:
    plan = plans.dag(a=task(), b=task(when={"a": Condition.FINISHED}), c=task("b"))
    run = await harness.submit(plan)
    claimed = await worker.claim_one()
    await harness.store.cancel(run)
    await worker.end(claimed)
    assert not await worker.claim()
    await harness.settle()
    assert set((await harness.stands(run)).values()) == {"Cancelled"}


async def test_cancel_answers_no_when_the_root_had_ended(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task()))
    await worker.run_all()
    assert not await harness.store.cancel(run)
    assert set((await harness.stands(run)).values()) == {"Succeeded"}


async def test_cancel_may_be_repeated(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    assert await harness.store.cancel(run)
    assert await harness.store.cancel(run)
    await worker.end(claimed)
    assert await harness.store.cancel(run)
    assert await harness.stand(run) == "Cancelled"


async def test_cancel_leaves_other_roots_alone(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(count=3)))
    other = await harness.submit(plans.dag("other", a=task(count=3)))
    await harness.store.cancel(run)
    assert await harness.counts(other) == {"Queued": 3}
    await worker.run_all()
    assert await harness.stand(other) == "Succeeded"


async def test_downstream_root_goes_when_a_cancelled_job_has_ended(
    harness: Harness, worker: Worker
) -> None:
    up = await harness.submit(plans.job("up"))
    await worker.claim_one()
    down = plans.job("down", outside=[plans.outside("up", Condition.FINISHED)])
    run = await harness.submit(down)
    await harness.store.cancel(up)
    assert await harness.stand(run) == "Waiting/Upstream"
    await harness.reap(worker)
    assert await harness.stand(run) == "Queued"


async def test_job_ends_once_when_cancel_and_complete_meet(
    harness: Harness, worker: Worker
) -> None:
    other = await harness.another()
    for number in range(20):
        run = await harness.submit(plans.dag(f"flow{number}", a=task(), b=task("a")))
        claimed = await worker.claim_one()
        answer, _ = await asyncio.gather(worker.end(claimed), other.cancel(run))
        await harness.settle()
        assert answer is ReportResult.ACCEPTED
        assert not await worker.claim()
        stands = await harness.stands(run)
        assert (stands[f"flow{number}"], stands["b"]) == ("Cancelled", "Cancelled")

"""cancel: after the answer, no job of the run starts."""

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
    assert await harness.state(run) == "Cancelled"
    assert not await worker.claim()


async def test_waiting_and_queued_tasks_end_when_cancelled(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task(count=2)))
    assert await harness.store.cancel(run)
    await harness.propagate_all()
    assert set((await harness.states(run)).values()) == {"Cancelled"}


async def test_deferred_job_ends_when_cancelled(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.retry(await worker.claim_one())
    assert await harness.store.cancel(run)
    await harness.advance(timedelta(minutes=1))
    await harness.promote()
    assert await harness.state(run) == "Cancelled"


async def test_scheduled_job_ends_when_cancelled(harness: Harness) -> None:
    start = harness.database.clock.now() + timedelta(hours=1)
    run = await harness.submit(plans.job(start_after=start))
    assert await harness.store.cancel(run)
    assert await harness.state(run) == "Cancelled"


async def test_suspended_job_ends_when_cancelled(harness: Harness) -> None:
    run = await harness.submit(plans.job(is_suspended=True))
    assert await harness.store.cancel(run)
    assert await harness.state(run) == "Cancelled"


async def test_running_job_is_signalled_when_cancelled(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    assert await harness.store.cancel(run)
    assert await harness.state(run) == "Running"
    (held,) = (await worker.heartbeat()).held
    assert (held.claim, held.signal) == (claimed.claim, Signal.CANCEL)


@pytest.mark.parametrize("outcome", list(Outcome))
async def test_signalled_job_is_cancelled_when_its_worker_reports_another_end(
    harness: Harness, worker: Worker, outcome: Outcome
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.store.cancel(run)
    assert await worker.end(claimed, outcome) is ReportResult.ACCEPTED
    assert await harness.state(run) == "Cancelled"


async def test_signalled_job_is_cancelled_when_released(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.store.cancel(run)
    await worker.release(claimed)
    assert await harness.state(run) == "Cancelled"


async def test_signalled_job_is_cancelled_when_its_worker_is_reaped(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    await harness.store.cancel(run)
    reaped = await harness.reap(worker)
    assert await harness.state(run) == "Cancelled"
    assert reaped.was_reaped
    assert (list(reaped.requeued), list(reaped.failed)) == ([], [])


async def test_workflow_ends_when_its_last_running_task_ends(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task(), c=task("a", "b")))
    claimed = await worker.claim_by_name()
    assert await harness.store.cancel(run)
    await worker.end(claimed["a"])
    await harness.propagate_all()
    assert await harness.states(run) == {
        "flow": "Running",
        "a": "Cancelled",
        "b": "Running",
        "c": "Cancelled",
    }
    await worker.end(claimed["b"])
    await harness.propagate_all()
    assert set((await harness.states(run)).values()) == {"Cancelled"}


async def test_ended_tasks_keep_their_state_when_the_rest_is_cancelled(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a")))
    await worker.end(await worker.claim_one())
    assert await harness.store.cancel(run)
    await harness.propagate_all()
    stands = await harness.states(run)
    assert stands == {"flow": "Cancelled", "a": "Succeeded", "b": "Cancelled"}


async def test_jobs_do_not_become_ready_when_their_run_is_cancelled(
    harness: Harness, worker: Worker
) -> None:
    plan = plans.dag(a=task(), b=task(when={"a": Condition.FINISHED}), c=task("b"))
    run = await harness.submit(plan)
    claimed = await worker.claim_one()
    await harness.store.cancel(run)
    await worker.end(claimed)
    assert not await worker.claim()
    await harness.propagate_all()
    assert set((await harness.states(run)).values()) == {"Cancelled"}


async def test_cancel_returns_false_when_the_run_has_ended(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task()))
    await worker.run_all()
    assert not await harness.store.cancel(run)
    assert set((await harness.states(run)).values()) == {"Succeeded"}


async def test_cancel_may_be_repeated(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    assert await harness.store.cancel(run)
    assert await harness.store.cancel(run)
    await worker.end(claimed)
    assert await harness.store.cancel(run)
    assert await harness.state(run) == "Cancelled"


async def test_cancel_does_not_affect_other_runs(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(count=3)))
    other = await harness.submit(plans.dag("other", a=task(count=3)))
    await harness.store.cancel(run)
    assert await harness.counts(other) == {"Queued": 3}
    await worker.run_all()
    assert await harness.state(other) == "Succeeded"


async def test_downstream_run_becomes_ready_when_a_cancelled_job_has_ended(
    harness: Harness, worker: Worker
) -> None:
    up = await harness.submit(plans.job("up"))
    await worker.claim_one()
    down = plans.job("down", outside=[plans.outside("up", Condition.FINISHED)])
    run = await harness.submit(down)
    await harness.store.cancel(up)
    assert await harness.state(run) == "Waiting/Upstream"
    await harness.reap(worker)
    assert await harness.state(run) == "Queued"


async def test_job_ends_once_when_cancel_and_complete_race(
    harness: Harness, worker: Worker
) -> None:
    other = await harness.open_another()
    for number in range(20):
        run = await harness.submit(plans.dag(f"flow{number}", a=task(), b=task("a")))
        claimed = await worker.claim_one()
        answer, _ = await asyncio.gather(worker.end(claimed), other.cancel(run))
        await harness.propagate_all()
        assert answer is ReportResult.ACCEPTED
        assert not await worker.claim()
        stands = await harness.states(run)
        assert (stands[f"flow{number}"], stands["b"]) == ("Cancelled", "Cancelled")

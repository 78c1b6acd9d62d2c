"""suspend and resume: no job of a suspended run starts, and none is lost."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.store.types import Outcome


async def test_queued_job_is_suspended(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    assert await harness.store.suspend(run)
    assert await harness.state(run) == "Waiting/Suspended"
    assert not await worker.claim()


async def test_suspended_job_is_queued_when_resumed(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(priority=3))
    await harness.store.suspend(run)
    assert await harness.store.resume(run)
    row = await harness.row(run)
    assert (row.state, row.priority) == ("Queued", 3)
    await worker.end(await worker.claim_one())


async def test_job_is_queued_when_a_run_submitted_as_suspended_is_resumed(
    harness: Harness, worker: Worker
) -> None:
    plan = plans.dag("flow", {"is_suspended": True}, a=task(), b=task("a"))
    run = await harness.submit(plan)
    assert await harness.store.resume(run)
    assert await harness.state(run, "a") == "Queued"
    assert await harness.state(run, "b") == "Waiting/Upstream"
    await worker.run_all()
    assert await harness.state(run) == "Succeeded"


async def test_one_resume_is_enough_when_suspended_twice(harness: Harness) -> None:
    run = await harness.submit(plans.job())
    await harness.store.suspend(run)
    await harness.store.suspend(run)
    await harness.store.resume(run)
    assert await harness.state(run) == "Queued"


async def test_second_resume_changes_nothing(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a")))
    await harness.store.suspend(run)
    await harness.store.resume(run)
    await harness.store.resume(run)
    assert await harness.state(run, "b") == "Waiting/Upstream"
    await worker.run_all()
    assert await harness.state(run) == "Succeeded"


async def test_waiting_tasks_are_suspended(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a")))
    claimed = await worker.claim_one()
    await harness.store.suspend(run)
    await worker.end(claimed)
    assert await harness.state(run, "b") == "Waiting/Suspended"
    await harness.store.resume(run)
    assert await harness.state(run, "b") == "Queued"


async def test_running_job_continues_when_suspended(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    assert await harness.store.suspend(run)
    assert await harness.state(run) == "Running"
    await worker.end(claimed)
    assert await harness.state(run) == "Succeeded"


async def test_running_job_fails_as_reported_when_suspended(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.store.suspend(run)
    await worker.fail(claimed)
    assert await harness.state(run) == "Failed/ExitCode"


async def test_retried_job_is_suspended_when_its_run_is(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.store.suspend(run)
    await worker.retry(claimed)
    await harness.advance(timedelta(minutes=1))
    await harness.promote()
    row = await harness.row(run)
    assert (row.state, row.reason, row.failures) == ("Waiting", "Suspended", 1)
    await harness.store.resume(run)
    assert (await worker.claim_one()).failures == 1


async def test_released_job_is_suspended_when_its_run_is(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.store.suspend(run)
    await worker.release(claimed)
    assert await harness.state(run) == "Waiting/Suspended"
    await harness.store.resume(run)
    assert (await worker.claim_one()).attempt == 2


async def test_lost_job_is_suspended_when_its_run_is(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    first = await worker.claim_one()
    await harness.store.suspend(run)
    await harness.reap(worker)
    assert await harness.state(run) == "Waiting/Suspended"
    await harness.store.resume(run)
    second = await (await harness.worker()).claim_one()
    assert (second.losses, second.attempt) == (1, 2)
    assert second.fence > first.fence


async def test_released_job_is_queued_when_its_run_was_resumed(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.store.suspend(run)
    await harness.store.resume(run)
    await worker.release(claimed)
    assert await harness.state(run) == "Queued"


async def test_deferred_job_is_suspended(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.retry(await worker.claim_one())
    await harness.store.suspend(run)
    assert await harness.state(run) == "Waiting/Suspended"
    await harness.advance(timedelta(minutes=1))
    await harness.promote()
    assert not await worker.claim()
    await harness.store.resume(run)
    await harness.promote()
    assert (await worker.claim_one()).failures == 1


async def test_scheduled_job_keeps_its_start_when_suspended_and_resumed(harness: Harness) -> None:
    start = harness.database.clock.now() + timedelta(hours=1)
    run = await harness.submit(plans.job(start_after=start))
    await harness.store.suspend(run)
    await harness.store.resume(run)
    row = await harness.row(run)
    assert (row.reason, row.due) == ("Scheduled", start)


async def test_suspended_task_is_skipped_when_resumed_after_its_upstream_failed(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task("b")))
    claimed = await worker.claim_one()
    await harness.store.suspend(run)
    await worker.fail(claimed)
    await harness.propagate_all()
    await harness.store.resume(run)
    await harness.propagate_all()
    stands = await harness.states(run)
    assert (stands["b"], stands["c"]) == ("Skipped/UpstreamFailed",) * 2
    assert stands["flow"] == "Failed/MemberFailed"


@pytest.mark.parametrize("verb", ["suspend", "resume"])
async def test_suspend_returns_false_when_the_run_has_ended(
    harness: Harness, worker: Worker, verb: str
) -> None:
    run = await harness.submit(plans.job())
    await worker.run_all({"job": Outcome.FAILED})
    assert not await getattr(harness.store, verb)(run)
    assert await harness.state(run) == "Failed/ExitCode"


async def test_suspended_jobs_end_when_cancelled(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a")))
    await harness.store.suspend(run)
    await harness.store.cancel(run)
    await harness.propagate_all()
    assert set((await harness.states(run)).values()) == {"Cancelled"}
    await harness.store.resume(run)
    assert set((await harness.states(run)).values()) == {"Cancelled"}


async def test_suspend_does_not_affect_other_runs(harness: Harness, worker: Worker) -> None:
    held = await harness.submit(plans.job("held"))
    await harness.submit(plans.job("free"))
    await harness.store.suspend(held)
    assert (await worker.claim_one()).name == "free"
    assert not await worker.claim()


async def test_large_run_is_suspended_and_resumed_as_a_whole(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=2500), b=task("a", count=2500, each=True)))
    await harness.store.suspend(run)
    assert await harness.counts(run) == {"Waiting/Suspended": 5000}
    await harness.store.resume(run)
    assert await harness.counts(run) == {"Queued": 2500, "Waiting/Upstream": 2500}
    assert len(await worker.claim(5)) == 5

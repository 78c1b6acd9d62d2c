"""A suspension and a resumption of a run whose jobs move."""

from tests.store.behaviour import plans
from tests.store.postgres.stage import Stage, WorkerActor
from workron.core.ids import JobId
from workron.store.types import Signal

_LOOK = r"SELECT NOT EXISTS \(.*INTO _is_over;"
_NO_LOOK = "_is_over := true;"


async def _suspend_meanwhile(stage: Stage, worker: WorkerActor, run: JobId) -> None:
    """Suspend while `worker` has moved the job and not committed."""
    holder = await stage.actor()
    holding = await stage.start(holder, holder.suspend(run))
    assert not holding.done()
    await worker.commit()
    assert await holding


async def _suspend_while_it_is_claimed(stage: Stage) -> Signal | None:
    run = await stage.submit(plans.job())
    worker = await stage.worker()
    await worker.begin()
    await worker.claim_one()
    await _suspend_meanwhile(stage, worker, run)
    (held,) = (await worker.heartbeat()).held
    return held.signal


async def test_job_is_signaled_when_it_is_claimed_during_the_suspension(stage: Stage) -> None:
    assert await _suspend_while_it_is_claimed(stage) is Signal.SUSPEND


async def test_job_is_not_suspended_when_a_suspension_reads_the_tables_once(stage: Stage) -> None:
    await stage.replace("bulk_update_step", _LOOK, _NO_LOOK)
    assert await _suspend_while_it_is_claimed(stage) is None


async def test_job_is_suspended_when_it_is_retried_meanwhile(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker = await stage.worker()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.retry(claimed)
    await _suspend_meanwhile(stage, worker, run)
    assert await stage.states(run) == {"job": "Waiting/Suspended"}


async def test_job_is_suspended_when_its_retry_comes_during_the_suspension(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker, holder = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await holder.begin()
    await holder.suspend(run)
    retrying = await stage.start(worker, worker.retry(claimed))
    await holder.commit()
    await retrying
    assert await stage.states(run) == {"job": "Waiting/Suspended"}


async def test_downstream_is_suspended_when_its_upstream_ends_meanwhile(stage: Stage) -> None:
    run = await stage.submit(plans.dag(a=plans.task(), b=plans.task("a")))
    worker = await stage.worker()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.end(claimed)
    await _suspend_meanwhile(stage, worker, run)
    assert (await stage.states(run))["b"] == "Waiting/Suspended"
    await stage.watcher.resume(run)
    assert (await stage.states(run))["b"] == "Queued"


async def test_suspended_downstream_is_counted_down_when_its_upstream_ends_meanwhile(
    stage: Stage,
) -> None:
    run = await stage.submit(plans.dag(a=plans.task(), b=plans.task("a")))
    worker, holder = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await holder.begin()
    await holder.suspend(run)
    ending = await stage.start(worker, worker.end(claimed))
    await holder.commit()
    await ending
    await stage.watcher.resume(run)
    assert (await stage.states(run))["b"] == "Queued"


async def test_retry_is_deferred_when_it_comes_during_the_resume(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker, resumer = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await stage.watcher.suspend(run)
    await resumer.begin()
    await resumer.resume(run)
    retrying = await stage.start(worker, worker.retry(claimed))
    await resumer.commit()
    await retrying
    assert await stage.states(run) == {"job": "Waiting/Backoff"}


async def test_job_is_resumed_when_it_was_suspended_just_before(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker, resumer = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await stage.watcher.suspend(run)
    await worker.begin()
    await worker.retry(claimed)
    resuming = await stage.start(resumer, resumer.resume(run))
    await worker.commit()
    assert await resuming
    assert await stage.states(run) == {"job": "Queued"}

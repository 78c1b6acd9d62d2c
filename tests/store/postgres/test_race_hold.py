"""A hold and a resume that meet their jobs as they move."""

from tests.store.behaviour import plans
from tests.store.postgres.stage import Hand, Stage
from workron.core.ids import JobId
from workron.store.types import Signal

_LOOK = r"SELECT NOT EXISTS \(.*INTO _is_over;"
_NO_LOOK = "_is_over := true;"


async def _hold_meanwhile(stage: Stage, worker: Hand, run: JobId) -> None:
    """Hold while `worker` has moved the job and not committed that."""
    holder = await stage.actor()
    holding = await stage.start(holder, holder.suspend(run))
    assert not holding.done()
    await worker.commit()
    assert await holding


async def _hold_while_it_is_claimed(stage: Stage) -> Signal | None:
    run = await stage.submit(plans.job())
    worker = await stage.worker()
    await worker.begin()
    await worker.claim_one()
    await _hold_meanwhile(stage, worker, run)
    (held,) = (await worker.heartbeat()).held
    return held.signal


async def test_job_is_marked_when_it_is_claimed_during_the_hold(stage: Stage) -> None:
    assert await _hold_while_it_is_claimed(stage) is Signal.SUSPEND


async def test_job_is_not_held_when_a_hold_looks_only_once(stage: Stage) -> None:
    await stage.replace("bulk_update_step", _LOOK, _NO_LOOK)
    assert await _hold_while_it_is_claimed(stage) is None


async def test_job_is_suspended_when_it_is_retried_meanwhile(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker = await stage.worker()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.retry(claimed)
    await _hold_meanwhile(stage, worker, run)
    assert await stage.stands(run) == {"job": "Waiting/Suspended"}


async def test_job_is_suspended_when_its_retry_comes_during_the_hold(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker, holder = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await holder.begin()
    await holder.suspend(run)
    retrying = await stage.start(worker, worker.retry(claimed))
    await holder.commit()
    await retrying
    assert await stage.stands(run) == {"job": "Waiting/Suspended"}


async def test_downstream_is_suspended_when_its_upstream_ends_meanwhile(stage: Stage) -> None:
    run = await stage.submit(plans.dag(a=plans.task(), b=plans.task("a")))
    worker = await stage.worker()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.end(claimed)
    await _hold_meanwhile(stage, worker, run)
    assert (await stage.stands(run))["b"] == "Waiting/Suspended"
    await stage.watcher.resume(run)
    assert (await stage.stands(run))["b"] == "Queued"


async def test_held_downstream_is_counted_down_when_its_upstream_ends_meanwhile(
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
    assert (await stage.stands(run))["b"] == "Queued"


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
    assert await stage.stands(run) == {"job": "Waiting/Backoff"}


async def test_job_is_resumed_when_it_was_held_back_just_before(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker, resumer = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await stage.watcher.suspend(run)
    await worker.begin()
    await worker.retry(claimed)
    resuming = await stage.start(resumer, resumer.resume(run))
    await worker.commit()
    assert await resuming
    assert await stage.stands(run) == {"job": "Queued"}

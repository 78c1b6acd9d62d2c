"""A cancel of a run whose jobs move: claimed, retried, promoted, reaped, ended, expired."""

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY
from tests.store.postgres.stage import Actor, Stage, WorkerActor
from workron.core.ids import JobId
from workron.store.types import Signal

# A cancel that trusts its first step, and does not read all tables in one statement.
_LOOK = r"SELECT NOT EXISTS \(.*INTO _is_over;"
_NO_LOOK = "_is_over := true;"


async def _cancel_while(stage: Stage, mover: WorkerActor | Actor, run: JobId) -> None:
    """Cancel while `mover` has moved the job and not committed."""
    canceller = await stage.actor()
    cancelling = await stage.start(canceller, canceller.cancel(run))
    assert not cancelling.done()
    await mover.commit()
    assert await cancelling


async def _cancel_while_it_is_claimed(stage: Stage) -> WorkerActor:
    run = await stage.submit(plans.job())
    worker = await stage.worker()
    await worker.begin()
    await worker.claim_one()
    await _cancel_while(stage, worker, run)
    return worker


async def test_job_is_signaled_when_it_is_claimed_during_the_cancel(stage: Stage) -> None:
    worker = await _cancel_while_it_is_claimed(stage)
    assert [held.signal for held in (await worker.heartbeat()).held] == [Signal.CANCEL]


async def test_job_keeps_running_when_a_cancel_reads_the_tables_once(stage: Stage) -> None:
    await stage.replace("bulk_update_step", _LOOK, _NO_LOOK)
    worker = await _cancel_while_it_is_claimed(stage)
    assert [held.signal for held in (await worker.heartbeat()).held] == [None]


async def _cancel_while_it_is_promoted(stage: Stage) -> dict[str, str]:
    run = await stage.submit(plans.job())
    worker, promoter = await stage.worker(), await stage.actor()
    await worker.retry(await worker.claim_one(), delay_seconds=0)
    await promoter.begin()
    assert await promoter.promote(MANY) == 1
    await _cancel_while(stage, promoter, run)
    return await stage.states(run)


async def test_job_is_cancelled_when_it_is_promoted_meanwhile(stage: Stage) -> None:
    assert await _cancel_while_it_is_promoted(stage) == {"job": "Cancelled"}


async def test_cancelled_job_is_queued_when_a_cancel_reads_the_tables_once(stage: Stage) -> None:
    await stage.replace("bulk_update_step", _LOOK, _NO_LOOK)
    assert await _cancel_while_it_is_promoted(stage) == {"job": "Queued"}


async def test_job_is_cancelled_when_it_is_retried_meanwhile(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker = await stage.worker()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.retry(claimed)
    await _cancel_while(stage, worker, run)
    assert await stage.states(run) == {"job": "Cancelled"}


async def test_end_stands_when_it_was_reported_just_before_the_cancel(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker = await stage.worker()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.end(claimed)
    await _cancel_while(stage, worker, run)
    assert await stage.states(run) == {"job": "Succeeded"}
    assert await stage.count_stranded() == 0


async def test_job_is_cancelled_when_it_is_released_meanwhile(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker = await stage.worker()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.release(claimed)
    await _cancel_while(stage, worker, run)
    assert await stage.states(run) == {"job": "Cancelled"}


async def test_job_is_cancelled_when_its_worker_is_reaped_meanwhile(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker, maintainer = await stage.worker(), await stage.actor()
    await worker.claim_one()
    await maintainer.begin()
    await maintainer.reap(worker.session.worker, version=await maintainer.heartbeat_version(worker))
    await _cancel_while(stage, maintainer, run)
    assert await stage.states(run) == {"job": "Cancelled"}


async def test_job_is_cancelled_when_its_last_upstream_ends_meanwhile(stage: Stage) -> None:
    run = await stage.submit(plans.dag(a=plans.task(), b=plans.task("a")))
    worker = await stage.worker()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.end(claimed)
    await _cancel_while(stage, worker, run)
    await stage.settle()
    assert await stage.states(run) == {"flow": "Cancelled", "a": "Succeeded", "b": "Cancelled"}


async def test_success_becomes_a_cancel_when_it_is_reported_during_the_cancel(
    stage: Stage,
) -> None:
    run = await stage.submit(plans.job())
    worker, canceller = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await canceller.begin()
    await canceller.cancel(run)
    ending = await stage.start(worker, worker.end(claimed))
    await canceller.commit()
    await ending
    assert await stage.states(run) == {"job": "Cancelled"}


async def test_job_is_cancelled_when_two_cancel_it_at_once(stage: Stage) -> None:
    run = await stage.submit(plans.array(3))
    one, other = await stage.actor(), await stage.actor()
    await one.begin()
    await one.cancel(run)
    cancelling = await stage.start(other, other.cancel(run))
    await one.commit()
    await cancelling
    assert await stage.count_stranded() == 0
    assert set((await stage.states(run)).values()) == {"Cancelled"}


# A step that reads the run in the statement that waits, as it was before the wait.
_READ_LATE = r"SELECT operation, priority INTO.*FROM workron\.run WHERE id = _run;"
_READ_EARLY = """
    SELECT s.operation, s.priority, r.last,
           CASE WHEN r.forced OR r.finally_from IS NULL THEN r.last ELSE r.finally_from - 1 END
    INTO _operation, _priority, _last, _last_cancelled
    FROM workron.bulk_update s JOIN workron.run r ON r.id = s.run
    WHERE s.run = _run FOR UPDATE OF s;
    IF NOT FOUND THEN
        RETURN true;
    END IF;"""


async def _force_while_a_step_waits(stage: Stage) -> list[Signal | None]:
    """Force a cancellation while the maintainer finishes the first one; return the signals."""
    run = await stage.submit(plans.dag("flow", {"last": {"z": plans.task()}}, a=plans.task()))
    canceller, stepper = await stage.actor(), await stage.actor()
    await canceller.cancel(run)
    await stage.settle()
    worker = await stage.worker()
    await worker.claim_one()
    await stage.sql.execute("INSERT INTO workron.bulk_update VALUES ($1, 'cancel')", run)
    await canceller.begin()
    await canceller._change("cancel", run=run, force=True)
    step = await stage.start(stepper, stepper._call_value("bulk_update_step", run, MANY))
    await canceller.commit()
    await step
    return [held.signal for held in (await worker.heartbeat()).held]


async def test_finally_is_signaled_when_the_force_comes_during_a_step(stage: Stage) -> None:
    assert await _force_while_a_step_waits(stage) == [Signal.CANCEL]


async def test_force_is_lost_when_a_step_reads_the_run_before_it_waits(stage: Stage) -> None:
    await stage.replace("bulk_update_step", _READ_LATE, _READ_EARLY)
    assert await _force_while_a_step_waits(stage) == [None]

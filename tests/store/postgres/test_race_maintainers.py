"""Two maintainers at once, and a maintainer beside workers: promote, propagate, wide rows."""

import asyncio

import asyncpg

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, mint_boot, report_on
from tests.store.postgres.stage import Stage
from workron.core.ids import JobId
from workron.core.plan import WIDE_FAN_IN


async def test_job_is_queued_once_when_two_promote_it_at_once(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker = await stage.worker()
    await worker.retry(await worker.claim_one(), delay_seconds=0)
    one, other = await stage.actor(), await stage.actor()
    await one.begin()
    assert await one.promote(MANY) == 1
    promoting = await stage.start(other, other.promote(MANY))
    assert promoting.done()
    assert await promoting == 0
    await one.commit()
    assert await stage.states(run) == {"job": "Queued"}
    assert not await stage.misplaced_jobs()


async def test_retry_is_promoted_by_the_next_step_when_both_meet(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker, promoter = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.retry(claimed, delay_seconds=0)
    promoting = await stage.start(promoter, promoter.promote(MANY))
    assert await promoting == 0
    await worker.commit()
    assert await promoter.promote(MANY) == 1
    assert await stage.states(run) == {"job": "Queued"}


async def test_job_is_retried_once_when_its_retry_is_reported_twice_at_once(
    stage: Stage,
) -> None:
    run = await stage.submit(plans.job())
    one = await stage.worker()
    other, claimed = await stage.twin(one), await one.claim_one()
    await one.begin()
    await one.retry(claimed)
    retrying = await stage.start(other, other.retry(claimed))
    await one.commit()
    assert await retrying == "already"
    assert await stage.states(run) == {"job": "Waiting/Backoff"}
    assert not await stage.misplaced_jobs()


async def _complete_and_expire_at_once(stage: Stage) -> list[object]:
    """End two jobs, waiting at the second, while the deadline of the first passes."""
    run = await stage.submit(plans.array(2, deadline_seconds=0))
    worker, expirer, holder = await stage.worker(), await stage.actor(), await stage.actor()
    claimed = await worker.claim(2)
    await holder.begin()
    await holder.connection.execute(
        "SELECT 1 FROM workron.running WHERE job = $1 FOR UPDATE", run + 3
    )
    ends = [report_on(one) for one in claimed]
    racing = [
        await stage.start(worker, worker.store.complete(worker.session.key, ends)),
        await stage.start(expirer, expirer.expire(MANY)),
    ]
    await holder.commit()
    return await asyncio.gather(*racing, return_exceptions=True)


async def test_deadline_of_an_ended_job_is_left_to_expire_when_it_is_locked(stage: Stage) -> None:
    completed, expired = await _complete_and_expire_at_once(stage)
    assert not isinstance(completed, BaseException)
    assert expired == 2
    assert await stage.sql.fetchval("SELECT count(*) FROM workron.deadline") == 0
    assert not await stage.misplaced_jobs()


async def test_complete_and_expire_deadlock_when_complete_waits_for_deadlines(stage: Stage) -> None:
    await stage.without("deadline")
    answers = await _complete_and_expire_at_once(stage)
    assert [isinstance(one, asyncpg.DeadlockDetectedError) for one in answers].count(True) == 1


async def _two_downstreams_of_a_cancelled_job(stage: Stage) -> JobId:
    up = await stage.submit(plans.job("up"))
    down = await stage.submit(
        plans.dag(a=task(outside=[plans.outside("up")]), b=task(outside=[plans.outside("up")]))
    )
    await stage.watcher.cancel(up)
    return down


async def test_end_is_propagated_once_when_two_maintainers_propagate(stage: Stage) -> None:
    down = await _two_downstreams_of_a_cancelled_job(stage)
    one, other = await stage.actor(), await stage.actor()
    await one.begin()
    assert await one.propagate(MANY) == 1
    settling = await stage.start(other, other.propagate(MANY))
    assert await settling == 0
    await one.commit()
    assert await stage.count_stranded() == 0
    assert set((await stage.states(down)).values()) == {
        "Succeeded",
        "Skipped/UpstreamCancelled",
    }


async def _still_to_come(stage: Stage) -> int:
    """Return how many elements an array waits for, without its pending ends."""
    assert not await stage.sql.fetch("SELECT * FROM workron.pending_end")
    return int(
        await stage.sql.fetchval(
            "SELECT remaining FROM workron.waiting JOIN workron.job ON id = job "
            "WHERE kind = 'Array'"
        )
    )


async def _end_two_elements_at_once(stage: Stage) -> bool:
    """Return whether the second end waited for the first."""
    await stage.submit(plans.array(3))
    one = await stage.worker()
    other = await stage.twin(one)
    first, second, _ = await one.claim(3)
    await one.begin()
    await one.end(first)
    ending = await stage.start(other, other.end(second))
    has_waited = not ending.done()
    await one.commit()
    await ending
    return has_waited


async def test_wide_row_is_counted_down_by_both_when_two_elements_end_at_once(
    stage: Stage,
) -> None:
    assert not await _end_two_elements_at_once(stage)
    await stage.settle()
    assert await _still_to_come(stage) == 1


async def test_wide_downstream_is_claimed_without_a_maintainer_when_two_upstreams_end_at_once(
    stage: Stage,
) -> None:
    many = {f"up{number}": plans.task() for number in range(WIDE_FAN_IN + 1)}
    await stage.submit(plans.dag("flow", **many, last=plans.task(*many)))
    one = await stage.worker()
    other = await stage.twin(one)
    first, second, *rest = await one.claim(MANY)
    for claimed in rest:
        await one.end(claimed)
    await one.begin()
    await one.end(first)
    await other.end(second)  # finds the row locked, and leaves a pending end
    await one.commit()
    assert (await one.claim_one()).name == "last"


async def test_ends_wait_for_each_other_when_wide_rows_are_not_skipped(stage: Stage) -> None:
    await stage.without("pending_ends")
    assert await _end_two_elements_at_once(stage)


async def test_pending_ends_are_applied_once_when_two_maintainers_propagate(stage: Stage) -> None:
    await _end_two_elements_at_once(stage)  # the second left its end to the maintainer
    one, other = await stage.actor(), await stage.actor()
    await one.begin()
    assert await one.propagate(MANY) == 1
    settling = await stage.start(other, other.propagate(MANY))
    assert await settling == 0
    await one.commit()
    assert await _still_to_come(stage) == 1


async def test_array_ends_when_its_last_element_ends_during_the_propagation(
    stage: Stage,
) -> None:
    run = await stage.submit(plans.array(2))
    worker, settler = await stage.worker(), await stage.actor()
    first, second = await worker.claim(2)
    await stage.sql.execute("BEGIN")
    await stage.sql.execute("SELECT 1 FROM workron.waiting WHERE wide FOR UPDATE")
    await worker.end(first)
    await stage.sql.execute("COMMIT")
    await settler.begin()
    assert await settler.propagate(MANY) == 1
    ending = await stage.start(worker, worker.end(second))
    assert ending.done()
    await settler.commit()
    await stage.settle()
    assert set((await stage.states(run)).values()) == {"Succeeded"}


async def test_one_maintainer_is_elected_when_two_candidates_meet(stage: Stage) -> None:
    one, other = await stage.actor(), await stage.actor()
    await one.begin()
    assert await one.elect(mint_boot(), 10.0)
    electing = await stage.start(other, other.elect(mint_boot(), 10.0))
    await one.commit()
    assert not await electing


async def test_run_is_cancelled_when_two_maintainers_continue_its_cancel(stage: Stage) -> None:
    run = await stage.submit(plans.array(5))
    one, other = await stage.actor(), await stage.actor()
    await one.begin()
    await one.cancel(run)
    settling = await stage.start(other, other.propagate(MANY))
    await one.commit()
    await settling
    assert await stage.count_stranded() == 0
    assert set((await stage.states(run)).values()) == {"Cancelled"}

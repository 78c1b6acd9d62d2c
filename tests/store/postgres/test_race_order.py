"""Operations lock the same rows in one order, so that none of them deadlocks.

A third transaction holds the row in the middle, and two operations wait for it, each with the lock
on its first row. If both began at the same end, one of them waits there for the other.
"""

import asyncio
from typing import Any

import asyncpg

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, report_on
from tests.store.postgres.stage import Actor, Stage
from workron.core.ids import JobId
from workron.store.postgres import functions


async def _hold_row(stage: Stage, table: str, job: int) -> Actor:
    holder = await stage.actor()
    await holder.begin()
    lock = f"SELECT 1 FROM workron.{table} WHERE job = $1 FOR UPDATE"
    await holder.connection.execute(lock, job)
    return holder


async def _put_the_last_first(stage: Stage, table: str, jobs: list[JobId]) -> None:
    for job in sorted(jobs, reverse=True):  # each update puts its row behind the others
        again = f"UPDATE workron.{table} SET priority = priority WHERE job = $1"
        await stage.sql.execute(again, job)


async def _let_plans_loose(stage: Stage, verb: str) -> None:
    # The order of locks must not depend on the plans that the installer forces for other reasons.
    await stage.replace(verb, "SET enable_seqscan = off SET enable_hashjoin = off", "")


def _deadlocks(answers: list[object]) -> int:
    return [type(answer) for answer in answers].count(asyncpg.DeadlockDetectedError)


async def _end_upstreams_of_the_same_three(stage: Stage) -> list[object]:
    needs = ("a", "b")
    run = await stage.submit(
        plans.dag(a=task(), b=task(), x=task(*needs), y=task(*needs), z=task(*needs))
    )
    first, second = await stage.worker(), await stage.worker("other")
    one, other = await first.claim_one(), await second.claim_one()
    await _let_plans_loose(stage, "complete")
    await first.store.forbid("seqscan", "hashjoin")
    await second.store.forbid("indexscan", "bitmapscan", "material")
    await _put_the_last_first(stage, "waiting", [JobId(run + offset) for offset in (3, 4, 5)])
    await stage.sql.execute("ANALYZE workron.waiting")
    holder = await _hold_row(stage, "waiting", run + 4)
    calls = [
        await stage.start(first, first.end(one)),
        await stage.start(second, second.end(other)),
    ]
    await holder.commit()
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_ends_do_not_deadlock_when_their_downstreams_are_the_same(stage: Stage) -> None:
    assert await _end_upstreams_of_the_same_three(stage) == ["accepted", "accepted"]


async def test_ends_deadlock_when_they_lock_in_the_order_of_their_plans(stage: Stage) -> None:
    await stage.without("propagate")
    assert _deadlocks(await _end_upstreams_of_the_same_three(stage)) == 1


async def _cancel_and_expire_the_same_three(stage: Stage) -> list[object]:
    run = await stage.submit(plans.array(3, deadline_seconds=0.0))
    worker = await stage.worker()
    jobs = sorted(claimed.job for claimed in await worker.claim(3))
    await _put_the_last_first(stage, "running", jobs)
    canceller, expirer = await stage.actor(), await stage.actor()
    await _let_plans_loose(stage, "bulk_update_step")
    await canceller.forbid("indexscan", "bitmapscan")
    holder = await _hold_row(stage, "running", jobs[1])
    calls = [
        await stage.start(expirer, expirer.expire(MANY)),
        await stage.start(canceller, canceller.cancel(run)),
    ]
    await holder.commit()
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_cancel_and_expiry_do_not_deadlock_when_they_signal_the_same_jobs(
    stage: Stage,
) -> None:
    assert await _cancel_and_expire_the_same_three(stage) == [3, True]


async def test_cancel_and_expiry_deadlock_when_one_signals_in_scan_order(stage: Stage) -> None:
    await stage.without("signal")
    assert _deadlocks(await _cancel_and_expire_the_same_three(stage)) == 1


async def _cancel_what_is_reported_in_another_order(stage: Stage) -> list[object]:
    run = await stage.submit(plans.array(3))
    worker, canceller = await stage.worker(), await stage.actor()
    claims = sorted(await worker.claim(3), key=lambda claimed: claimed.job)
    ends = [report_on(claimed) for claimed in reversed(claims)]
    holder = await _hold_row(stage, "running", claims[1].job)
    calls = [
        await stage.start(worker, worker.store.complete(worker.session.key, ends)),
        await stage.start(canceller, canceller.cancel(run)),
    ]
    await holder.commit()
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_report_and_cancel_do_not_deadlock_when_the_last_claim_is_reported_first(
    stage: Stage,
) -> None:
    assert _deadlocks(await _cancel_what_is_reported_in_another_order(stage)) == 0


async def test_report_and_cancel_deadlock_when_claims_are_locked_in_the_order_of_reports(
    stage: Stage,
) -> None:
    await stage.without("order")
    assert _deadlocks(await _cancel_what_is_reported_in_another_order(stage)) == 1


async def _cancel_and_expire_in_two_places(stage: Stage) -> list[object]:
    about: dict[str, Any] = {"deadline_seconds": 0.0}
    run = await stage.submit(plans.dag(a=task(**about), b=task(**about), c=task("a", "b", **about)))
    canceller, expirer = await stage.actor(), await stage.actor()
    holder = await _hold_row(stage, "ready", run + 2)
    calls = [
        await stage.start(canceller, canceller.cancel(run)),
        await stage.start(expirer, expirer.expire(MANY)),
    ]
    await holder.commit()
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_cancel_and_expiry_do_not_deadlock_when_they_go_table_by_table(
    stage: Stage,
) -> None:
    assert _deadlocks(await _cancel_and_expire_in_two_places(stage)) == 0


async def test_cancel_and_expiry_deadlock_when_one_begins_at_another_table(
    stage: Stage,
) -> None:
    waiting_first = "PERFORM 1 FROM workron.waiting WHERE job = ANY (_due) FOR UPDATE;\n"
    await stage.replace("expire", r"    WITH taken AS", waiting_first + "    WITH taken AS")
    assert _deadlocks(await _cancel_and_expire_in_two_places(stage)) == 1


async def _propagate_with_a_suspension_left_over(stage: Stage) -> list[object]:
    """Let the maintainer propagate one end to `c`, and suspend the run, while `b` ends."""
    up = await stage.submit(plans.job("up"))
    outside = [plans.outside("up")]
    run = await stage.submit(plans.dag(b=task(), c=task("b", outside=outside)))
    await stage.watcher.cancel(up)
    await stage.sql.fetch(functions.query("suspend"), run)
    worker, settler = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    holder = await _hold_row(stage, "waiting", run + 2)
    calls = [
        await stage.start(settler, settler.propagate(MANY)),
        await stage.start(worker, worker.end(claimed)),
    ]
    await holder.commit()
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_propagate_does_not_deadlock_when_it_continues_a_suspension(stage: Stage) -> None:
    assert _deadlocks(await _propagate_with_a_suspension_left_over(stage)) == 0

"""Roots and single jobs are shown without the rest of a run, as the whole would show them."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness, stand
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.store.types import Outcome, RunSummary

NOBODY = JobId(1)


async def _head(harness: Harness) -> RunSummary:
    (head,) = await harness.store.list_run_summaries()
    return head


async def _stand(harness: Harness, job: int) -> str:
    (row,) = await harness.store.get_jobs([JobId(job)])
    return stand(row)


async def test_heads_are_listed_newest_first(harness: Harness) -> None:
    submitted = [await harness.submit(plans.job(name)) for name in "abc"]
    heads = await harness.store.list_run_summaries()
    assert [head.job.job for head in heads] == submitted[::-1]
    assert [head.run.name for head in heads] == ["c", "b", "a"]


async def test_heads_of_one_namespace_are_listed_alone(harness: Harness) -> None:
    await harness.submit(plans.job("a"))
    other = await harness.submit(plans.dag("a", {"namespace": "elsewhere"}, b=task()))
    assert [head.job.job for head in await harness.store.list_run_summaries("elsewhere")] == [other]
    assert not await harness.store.list_run_summaries("nowhere")


async def test_head_of_a_job_is_its_row(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job())
    await worker.fail(await worker.claim_one())
    head = await _head(harness)
    assert (head.run.kind, head.job.exit_code, head.job.attempts) == (Kind.JOB, 1, 1)
    assert (head.ended, head.commands) == (1, 1)


async def test_head_counts_commands_and_no_groups(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.dag(a=task(count=2), b=task(), c=task("a", count=3)))
    head = await _head(harness)
    assert (head.ended, head.commands, stand(head.job)) == (0, 6, "Waiting/Upstream")
    for claimed in await worker.claim(2):
        await worker.end(claimed)
    await harness.settle()
    head = await _head(harness)
    assert (head.ended, head.commands, stand(head.job)) == (2, 6, "Running")
    await worker.run_all()
    head = await _head(harness)
    assert (head.ended, head.commands, stand(head.job)) == (6, 6, "Succeeded")


async def test_workflow_runs_as_soon_as_one_of_its_jobs_does(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=2), b=task("a")))
    assert await _stand(harness, run) == "Waiting/Upstream"
    await worker.claim_one()
    assert await _stand(harness, run) == "Running"


async def test_workflow_whose_jobs_only_wait_to_be_tried_again_waits(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task()))
    began = harness.ground.clock.now()
    await worker.retry(await worker.claim_one())
    (row,) = await harness.store.get_jobs([run])
    assert (stand(row), row.started_at) == ("Waiting/Upstream", began)


@pytest.mark.parametrize("has_ended", [False, True])
async def test_array_waits_whatever_the_arrays_beside_it_do(
    harness: Harness, worker: Worker, has_ended: bool
) -> None:
    plan = plans.dag(first=task(count=2), late=task("first", "last", count=2), last=task(count=2))
    run = await harness.submit(plan)
    claimed = await worker.claim(3)
    assert [one.name for one in claimed] == ["first", "first", "last"]
    if has_ended:
        await worker.end(claimed[-1])
    late, last = await harness.store.get_jobs([JobId(run + 4), JobId(run + 7)])
    assert (late.name, stand(late), late.started_at) == ("late", "Waiting/Upstream", None)
    assert (last.name, stand(last)) == ("last", "Running")


async def test_root_waits_whatever_the_roots_beside_it_do(harness: Harness, worker: Worker) -> None:
    held = plans.dag("held", {"is_suspended": True}, a=task())
    together = [plans.array(1, "before"), held, plans.array(1, "after")]
    submitted = await harness.store.submit(together)
    assert len(await worker.claim(3)) == 2
    rows = await harness.store.get_jobs([one.run for one in submitted])
    assert [stand(row) for row in rows] == ["Running", "Waiting/Upstream", "Running"]


async def test_group_began_with_the_first_of_its_members(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.array(2))
    began = harness.ground.clock.now()
    first = await worker.claim_one()
    await harness.advance(timedelta(seconds=1))
    await worker.claim_one()
    await worker.retry(first)
    rows = await harness.store.get_jobs([run, JobId(run + 1)])
    assert [row.started_at for row in rows] == [began, began]


async def test_jobs_are_given_in_the_order_in_which_they_are_asked_for(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task()))
    other = await harness.submit(plans.job())
    asked = [other, JobId(run + 2), run, other]
    rows = await harness.store.get_jobs([*asked[:2], NOBODY, *asked[2:]])
    assert [row.job for row in rows] == asked


async def test_nothing_is_asked_and_nothing_given(harness: Harness) -> None:
    await harness.submit(plans.job())
    assert not await harness.store.get_jobs([])
    assert not await harness.store.filter_ended([])


async def test_those_that_have_ended_are_told(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task()))
    claimed = await worker.claim_by_name()
    await worker.end(claimed["a"], Outcome.FAILED)
    await harness.settle()
    a, b = JobId(run + 1), JobId(run + 2)
    assert await harness.store.filter_ended([run, a, b, JobId(run + 3), NOBODY]) == {a, b}


async def test_member_is_found_by_its_name_and_index(harness: Harness) -> None:
    run = await harness.submit(plans.dag("flow", a=task(), many=task(count=2)))
    find = harness.store.find_job
    assert await find(run, "a") == run + 1
    assert await find(run, "many") == run + 2
    assert [await find(run, "many", index) for index in (0, 1)] == [run + 3, run + 4]


async def test_member_is_not_found_where_it_is_not(harness: Harness) -> None:
    run = await harness.submit(plans.dag("flow", a=task(), many=task(count=2)))
    await harness.submit(plans.dag("other", b=task()))
    find = harness.store.find_job
    for name, index in [("b", None), ("many", 2), ("a", 0), ("flow", None)]:
        assert await find(run, name, index) is None


async def test_spec_of_one_job_is_given_back(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(count=2), b=task()))
    assert await harness.store.get_spec(run) == {"tasks": 2}
    assert await harness.store.get_spec(JobId(run + 3)) == {"command": "run a"}

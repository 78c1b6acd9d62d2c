"""Summaries and single jobs agree with the rows of the whole run."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness, state_of
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.store.types import Outcome, RunSummary

UNKNOWN = JobId(1)


async def _head(harness: Harness) -> RunSummary:
    (head,) = await harness.store.list_run_summaries()
    return head


async def _stand(harness: Harness, job: int) -> str:
    (row,) = await harness.store.get_jobs([JobId(job)])
    return state_of(row)


async def test_summaries_are_listed_newest_first(harness: Harness) -> None:
    submitted = [await harness.submit(plans.job(name)) for name in "abc"]
    heads = await harness.store.list_run_summaries()
    assert [head.job.job for head in heads] == submitted[::-1]
    assert [head.run.name for head in heads] == ["c", "b", "a"]


async def test_summaries_of_one_namespace_are_listed(harness: Harness) -> None:
    await harness.submit(plans.job("a"))
    other = await harness.submit(plans.dag("a", {"namespace": "elsewhere"}, b=task()))
    assert [head.job.job for head in await harness.store.list_run_summaries("elsewhere")] == [other]
    assert not await harness.store.list_run_summaries("nowhere")


async def test_summary_of_a_job_has_its_row(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job())
    await worker.fail(await worker.claim_one())
    head = await _head(harness)
    assert (head.run.kind, head.job.exit_code, head.job.attempts) == (Kind.JOB, 1, 1)
    assert (head.ended, head.commands) == (1, 1)


async def test_summary_counts_commands_without_groups(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.dag(a=task(count=2), b=task(), c=task("a", count=3)))
    head = await _head(harness)
    assert (head.ended, head.commands, state_of(head.job)) == (0, 6, "Waiting/Upstream")
    for claimed in await worker.claim(2):
        await worker.end(claimed)
    await harness.propagate_all()
    head = await _head(harness)
    assert (head.ended, head.commands, state_of(head.job)) == (2, 6, "Running")
    await worker.run_all()
    head = await _head(harness)
    assert (head.ended, head.commands, state_of(head.job)) == (6, 6, "Succeeded")


async def test_workflow_is_running_when_one_of_its_jobs_is(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=2), b=task("a")))
    assert await _stand(harness, run) == "Waiting/Upstream"
    await worker.claim_one()
    assert await _stand(harness, run) == "Running"


async def test_workflow_waits_when_its_jobs_only_wait_for_a_retry(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task()))
    began = harness.database.clock.now()
    await worker.retry(await worker.claim_one())
    (row,) = await harness.store.get_jobs([run])
    assert (state_of(row), row.started_at) == ("Waiting/Upstream", began)


@pytest.mark.parametrize("has_ended", [False, True])
async def test_array_waits_when_only_other_arrays_run(
    harness: Harness, worker: Worker, has_ended: bool
) -> None:
    plan = plans.dag(first=task(count=2), late=task("first", "last", count=2), last=task(count=2))
    run = await harness.submit(plan)
    claimed = await worker.claim(3)
    assert [one.name for one in claimed] == ["first", "first", "last"]
    if has_ended:
        await worker.end(claimed[-1])
    late, last = await harness.store.get_jobs([JobId(run + 4), JobId(run + 7)])
    assert (late.name, state_of(late), late.started_at) == ("late", "Waiting/Upstream", None)
    assert (last.name, state_of(last)) == ("last", "Running")


async def test_run_waits_when_only_other_runs_run(harness: Harness, worker: Worker) -> None:
    held = plans.dag("held", {"is_suspended": True}, a=task())
    together = [plans.array(1, "before"), held, plans.array(1, "after")]
    submitted = await harness.store.submit(together)
    assert len(await worker.claim(3)) == 2
    rows = await harness.store.get_jobs([one.run for one in submitted])
    assert [state_of(row) for row in rows] == ["Running", "Waiting/Upstream", "Running"]


async def test_group_starts_with_its_first_member(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.array(2))
    began = harness.database.clock.now()
    first = await worker.claim_one()
    await harness.advance(timedelta(seconds=1))
    await worker.claim_one()
    await worker.retry(first)
    rows = await harness.store.get_jobs([run, JobId(run + 1)])
    assert [row.started_at for row in rows] == [began, began]


async def test_jobs_are_returned_in_the_requested_order(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task()))
    other = await harness.submit(plans.job())
    requested = [other, JobId(run + 2), run, other]
    rows = await harness.store.get_jobs([*requested[:2], UNKNOWN, *requested[2:]])
    assert [row.job for row in rows] == requested


async def test_empty_request_has_an_empty_answer(harness: Harness) -> None:
    await harness.submit(plans.job())
    assert not await harness.store.get_jobs([])
    assert not await harness.store.filter_ended([])


async def test_ended_jobs_are_filtered(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task()))
    claimed = await worker.claim_by_name()
    await worker.end(claimed["a"], Outcome.FAILED)
    await harness.propagate_all()
    a, b = JobId(run + 1), JobId(run + 2)
    assert await harness.store.filter_ended([run, a, b, JobId(run + 3), UNKNOWN]) == {a, b}


async def test_element_is_found_by_name_and_index(harness: Harness) -> None:
    run = await harness.submit(plans.dag("flow", a=task(), many=task(count=2)))
    find = harness.store.find_job
    assert await find(run, "a") == run + 1
    assert await find(run, "many") == run + 2
    assert [await find(run, "many", index) for index in (0, 1)] == [run + 3, run + 4]


async def test_unknown_element_is_not_found(harness: Harness) -> None:
    run = await harness.submit(plans.dag("flow", a=task(), many=task(count=2)))
    await harness.submit(plans.dag("other", b=task()))
    find = harness.store.find_job
    for name, index in [("b", None), ("many", 2), ("a", 0), ("flow", None)]:
        assert await find(run, name, index) is None


async def test_spec_of_one_job_is_returned(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(count=2), b=task()))
    assert await harness.store.get_spec(run) == {"tasks": 2}
    assert await harness.store.get_spec(JobId(run + 3)) == {"command": "run a"}

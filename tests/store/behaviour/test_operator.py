"""known, owned and edit: what is made of objects of a cluster, and of their changes."""

import uuid

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, Worker
from workron.core.plan import Kind
from workron.core.states import State
from workron.store.protocol import Mark, Outcome, Wish


def _wish(
    generation: int = 2,
    *,
    is_cancelled: bool = False,
    is_suspended: bool = False,
    priority: int = 0,
) -> Wish:
    return Wish(generation, is_cancelled, is_suspended, priority)


async def test_what_was_made_from_an_object_is_known_by_its_uid(harness: Harness) -> None:
    plan = plans.job(generation=3)
    root = await harness.submit(plan)
    began = harness.ground.clock.now()
    other = plans.job("other")
    await harness.submit(other)
    uid = plan.identity.uid
    found = await harness.store.known([uid, other.identity.uid, uuid.uuid4()])
    assert found.keys() == {uid}
    one = found[uid]
    assert (one.root, one.uid, one.generation, one.has_ended) == (root, uid, 3, False)
    assert (one.kind, one.namespace, one.name) == (Kind.JOB, plans.NAMESPACE, "job")
    assert one.submitted_at == began


async def test_what_has_ended_is_known_and_listed_no_more(harness: Harness, worker: Worker) -> None:
    plan = plans.job(generation=1)
    root = await harness.submit(plan)
    assert [one.root for one in await harness.store.owned(10)] == [root]
    await worker.run_all()
    assert (await harness.store.known([plan.identity.uid]))[plan.identity.uid].has_ended
    assert not await harness.store.owned(10)


async def test_unfinished_are_listed_some_at_a_time(harness: Harness) -> None:
    roots = [await harness.submit(plans.job(f"job-{at}", generation=1)) for at in range(5)]
    await harness.submit(plans.job("of no cluster"))
    first = await harness.store.owned(3)
    rest = await harness.store.owned(3, after=first[-1].root)
    assert [one.root for one in (*first, *rest)] == roots


async def test_priority_is_edited_wherever_a_job_is(harness: Harness, worker: Worker) -> None:
    flow = await harness.submit(
        plans.dag("flow", {"generation": 1}, a=task(), b=task("a"), c=task(), d=task())
    )
    claimed = await worker.claim_one()
    await worker.end(await worker.claim_one(), Outcome.RETRY, delay_seconds=5)
    await harness.submit(plans.job("other", priority=5))

    assert await harness.store.edit(flow, _wish(priority=9))

    assert {row.priority for row in await harness.store.jobs(flow)} == {9}
    await worker.end(claimed)
    assert [(await worker.claim_one()).name for _ in range(3)] == ["b", "d", "other"]


async def test_object_that_is_suspended_and_resumed(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.job(generation=1))
    assert await harness.store.edit(root, _wish(2, is_suspended=True))
    assert await harness.stand(root) == "Waiting/Suspended"
    assert await harness.store.edit(root, _wish(3))
    assert await harness.stand(root) == "Queued"
    await worker.run_all()


async def test_object_that_is_cancelled_stays_so(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.dag("flow", {"generation": 1}, a=task(), b=task("a")))
    claimed = await worker.claim_one()
    assert await harness.store.edit(root, _wish(2, is_cancelled=True, priority=4))
    assert not await harness.store.edit(root, _wish(3, is_suspended=True))
    assert set((await harness.store.marks(root)).values()) == {Mark.CANCEL}
    await worker.end(claimed)
    await harness.settle()
    assert await harness.stand(root) == "Cancelled"


@pytest.mark.parametrize("generation", [1, 2])
async def test_older_edition_changes_nothing(harness: Harness, generation: int) -> None:
    root = await harness.submit(plans.job(generation=1))
    await harness.store.edit(root, _wish(2, is_suspended=True))
    assert not await harness.store.edit(root, _wish(generation))
    assert await harness.stand(root) == "Waiting/Suspended"


async def test_edition_that_says_the_same_is_heard_all_the_same(harness: Harness) -> None:
    plan = plans.job(generation=1, priority=2)
    root = await harness.submit(plan)
    assert not await harness.store.edit(root, _wish(7, priority=2))
    assert (await harness.store.known([plan.identity.uid]))[plan.identity.uid].generation == 7


async def test_nothing_is_asked_of_what_has_ended(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.job(generation=1))
    await worker.run_all()
    assert not await harness.store.edit(root, _wish(is_cancelled=True))
    assert await harness.stand(root) == "Succeeded"


async def test_nothing_is_edited_in_a_root_of_no_cluster(harness: Harness) -> None:
    root = await harness.submit(plans.job())
    assert not await harness.store.edit(root, _wish(is_suspended=True))
    assert await harness.stand(root) == "Queued"


async def test_priority_goes_on_beside_a_hold(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.job(generation=1))
    await harness.store.edit(root, _wish(2, is_suspended=True, priority=3))
    await harness.store.resume(root)
    row = await harness.row(root)
    assert (row.state, row.priority) == (State.QUEUED, 3)
    await worker.run_all()


async def test_first_failures_are_told_without_groups(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.dag(a=task(), b=task(count=2), c=task()))
    for claimed in await worker.claim(MANY):
        if claimed.name != "c":
            await worker.end(claimed, Outcome.FAILED, exit_code=4)
    await harness.settle()
    found = await harness.store.failures(root, 2)
    assert [(one.name, one.index, one.exit_code) for one in found] == [("a", None, 4), ("b", 0, 4)]
    assert len(await harness.store.failures(root, 9)) == 3
    await worker.run_all()

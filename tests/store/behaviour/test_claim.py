"""claim: the right job, for one worker, with all that its attempt needs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, Worker, mint, mint_boot
from workron.core import errors
from workron.core.ids import SessionKey
from workron.core.states import State
from workron.store.types import ClaimedJob, Outcome

LARGE = "x" * 16_000


async def test_higher_priority_is_claimed_first(harness: Harness, worker: Worker) -> None:
    for priority in (0, 5, -5, 9):
        await harness.submit(plans.job(f"p{priority}", priority=priority))
    claimed = [await worker.claim_one() for _ in range(4)]
    assert [one.name for one in claimed] == ["p9", "p5", "p0", "p-5"]


async def test_older_job_is_claimed_first_when_priorities_are_equal(
    harness: Harness, worker: Worker
) -> None:
    for name in "cab":
        await harness.submit(plans.job(name))
    assert {one.name for one in await worker.claim(2)} == {"c", "a"}
    assert [one.name for one in await worker.claim(2)] == ["b"]


async def test_claims_are_limited_to_the_number_of_ids(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.array(5))
    assert len(await worker.claim(3)) == 3
    assert await harness.counts(run) == {"Running": 3, "Queued": 2}


async def test_only_ready_jobs_are_claimed(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.dag(a=task(), b=task("a")))
    assert [one.name for one in await worker.claim(MANY)] == ["a"]
    assert not await worker.claim(MANY)


async def test_nothing_is_claimed_when_no_id_is_given(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    assert not await worker.claim(0)
    assert await harness.state(run) == "Queued"


async def test_each_claim_has_one_of_the_given_ids(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.array(3))
    wanted = mint(5)
    claimed = await worker.store.claim(worker.session.key, wanted)
    assert len({one.claim for one in claimed}) == 3
    assert {one.claim for one in claimed} <= set(wanted)


async def test_repeated_call_has_the_same_answer_when_the_first_was_lost(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.array(5))
    wanted = mint(3)
    first = await worker.store.claim(worker.session.key, wanted)
    second = await worker.store.claim(worker.session.key, wanted)
    assert _by_claim(second) == _by_claim(first)
    assert await harness.counts(run) == {"Running": 3, "Queued": 2}


async def test_repeated_call_has_the_same_answer_when_its_ids_have_another_order(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.array(3))
    wanted = mint(4)
    first = await worker.store.claim(worker.session.key, wanted)
    second = await worker.store.claim(worker.session.key, wanted[::-1])
    assert _by_claim(second) == _by_claim(first)
    held = (await worker.heartbeat()).held
    assert {(one.job, one.ref) for one in second} == {(one.job, one.ref) for one in held}


async def test_claim_ids_of_another_worker_return_nothing(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.array(3))
    wanted = mint()
    await worker.store.claim(worker.session.key, wanted)
    other = await harness.worker("other")
    assert list(await worker.store.claim(other.session.key, wanted)) == []
    assert await harness.counts(run) == {"Running": 1, "Queued": 2}


async def test_session_is_rejected_when_it_was_never_registered(harness: Harness) -> None:
    await harness.submit(plans.job())
    with pytest.raises(errors.SessionError):
        await harness.store.claim(SessionKey(mint_boot()), mint())


async def test_only_jobs_of_the_own_pool_are_claimed(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("large", pool="large"))
    await harness.submit(plans.job("far", namespace="elsewhere"))
    assert not await worker.claim()
    large = await harness.worker(pool="large")
    far = await harness.worker(namespace="elsewhere")
    assert (await large.claim_one()).name == "large"
    assert (await far.claim_one()).name == "far"


async def test_claimed_job_runs_on_the_worker(harness: Harness) -> None:
    worker = await harness.worker("anna")
    run = await harness.submit(plans.job())
    await worker.claim_one()
    row = await harness.row(run)
    assert (row.state, row.worker, row.attempts) == (State.RUNNING, "anna", 1)
    assert row.started_at == harness.database.clock.now()


async def test_claim_returns_all_that_an_attempt_needs(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.array(1))
    claimed = await worker.claim_one()
    assert claimed.job == run + 2
    assert (claimed.namespace, claimed.run) == (plans.NAMESPACE, "flow")
    assert (claimed.name, claimed.index) == ("work", 0)
    assert (claimed.attempt, claimed.failures, claimed.losses) == (1, 0, 0)
    assert claimed.spec.body == {"command": "run work"}


@pytest.mark.parametrize("items", [["a", None, 3], [{"n": [1]}, {"n": []}]], ids=len)
async def test_claim_of_an_element_returns_its_item(
    harness: Harness, worker: Worker, items: Sequence[Any]
) -> None:
    await harness.submit(plans.array(0, items=items))
    claimed = await worker.claim(MANY)
    assert {one.index: one.item for one in claimed} == dict(enumerate(items))


async def test_attempt_and_fence_rise_when_a_job_was_released(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.release(first)
    second = await worker.claim_one()
    assert second.fence > first.fence
    assert second.attempt == 2


async def test_fence_rises_when_the_worker_was_reaped(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job())
    first = await worker.claim_one()
    await harness.reap(worker)
    second = await (await harness.worker()).claim_one()
    assert second.fence > first.fence
    assert (second.attempt, second.losses) == (2, 1)


async def test_fence_rises_when_the_job_is_retried(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.retry(first, delay_seconds=0)
    await harness.promote()
    second = await worker.claim_one()
    assert second.fence > first.fence
    assert (second.attempt, second.failures) == (2, 1)


async def test_fence_rises_when_the_clock_goes_back(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.release(first)
    await harness.advance(-timedelta(days=1))
    assert (await worker.claim_one()).fence > first.fence


async def test_fence_is_no_less_than_the_clock_in_microseconds(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job())
    claimed = await worker.claim_one()
    assert claimed.fence >= harness.database.clock.now().timestamp() * 1_000_000


async def test_claim_returns_the_results_of_upstreams(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.dag(a=task(), b=task(), c=task("a", "b")))
    claimed = await worker.claim_by_name()
    await worker.end(claimed["a"], result={"rows": [1, None, "ü"]})
    await worker.end(claimed["b"])
    assert (await worker.claim_one()).inputs == {"a": {"rows": [1, None, "ü"]}}


async def test_result_of_an_array_is_a_list_by_index(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.dag(a=task(count=3), b=task("a")))
    for one in reversed(await worker.claim(3)):
        await worker.end(one, result=None if one.index == 1 else {"index": one.index})
    await harness.propagate_all()
    claimed = await worker.claim_one()
    assert claimed.inputs == {"a": [{"index": 0}, None, {"index": 2}]}


async def test_claim_returns_the_result_of_the_paired_element(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.dag(a=task(count=2), b=task("a", count=2, each=True)))
    for one in await worker.claim(2):
        await worker.end(one, result=one.index)
    inputs = {one.index: one.inputs for one in await worker.claim(2)}
    assert inputs == {0: {"a": 0}, 1: {"a": 1}}


async def test_claim_has_no_inputs_when_there_are_no_upstreams(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job())
    claimed = await worker.claim_one()
    assert claimed.inputs is None
    assert not claimed.inputs_too_large


async def test_inputs_are_left_out_when_they_are_too_large(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.dag(a=task(count=70), b=task("a"), c=task("a")))
    for one in await worker.claim(70):
        await worker.end(one, result=LARGE)
    await harness.propagate_all()
    claimed = await worker.claim_one()
    assert claimed.inputs is None
    assert claimed.inputs_too_large


async def test_inputs_are_returned_again_when_the_claim_is_repeated(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.dag(a=task(), b=task("a")))
    await worker.end(await worker.claim_one(), result=[1])
    wanted = mint()
    first = await worker.store.claim(worker.session.key, wanted)
    second = await worker.store.claim(worker.session.key, wanted)
    assert [one.inputs for one in first] == [one.inputs for one in second] == [{"a": [1]}]


async def test_claim_returns_the_counters(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), Outcome.RETRY)
    await harness.advance(timedelta(seconds=1))
    await harness.promote()
    await harness.reap(worker)
    again = await (await harness.worker()).claim_one()
    assert (again.attempt, again.failures, again.losses) == (2, 1, 0)


def _by_claim(claimed: Sequence[ClaimedJob]) -> dict[object, dict[str, object]]:
    return {one.claim: msgspec.structs.asdict(one) for one in claimed}

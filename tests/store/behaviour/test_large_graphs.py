"""Large graphs: wide fan-in, wide fan-out, long chains."""

import dataclasses

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, Worker, mint, report_on
from workron.core.ids import JobId
from workron.core.plan import WIDE_FAN_IN, Plan
from workron.store.types import Outcome

pytestmark = pytest.mark.slow

WIDTH = 10_000


async def test_fan_out_is_queued_with_the_end_of_its_upstream(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a", count=WIDTH)))
    assert (await harness.counts(run))["Waiting/Upstream"] == WIDTH
    await worker.end(await worker.claim_one())
    assert (await harness.counts(run))["Queued"] == WIDTH


async def test_fan_in_is_queued_when_its_last_upstream_ends(
    harness: Harness, worker: Worker
) -> None:
    needs = [f"t{i}" for i in range(WIDTH)]
    plan = plans.dag(**{name: task() for name in needs}, end=task(*needs))
    run = await harness.submit(_without_inputs(plan))
    last = await worker.claim_one()
    await _finish(worker)
    await harness.propagate_all()
    assert await harness.state(run, "end") == "Waiting/Upstream"
    await worker.end(last)
    await harness.propagate_all()
    assert await harness.state(run, "end") == "Queued"


async def test_array_ends_when_its_last_element_ends(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(count=WIDTH), b=task("a")))
    last = await worker.claim_one()
    await _finish(worker)
    await harness.propagate_all()
    assert await harness.state(run, "a") == "Running"
    await worker.end(last)
    await harness.propagate_all()
    stands = await harness.states(run)
    assert (stands["a"], stands["b"]) == ("Succeeded", "Queued")


async def test_fan_out_is_skipped_in_bounded_steps(harness: Harness, worker: Worker) -> None:
    plan = plans.dag(a=task(), b=task("a"), c=task("b", count=WIDTH), d=task("c"))
    run = await harness.submit(plan)
    await worker.fail(await worker.claim_one())
    await harness.propagate_all()
    stands = await harness.states(run)
    assert (stands["c"], stands["d"]) == ("Skipped/UpstreamFailed",) * 2
    assert (await harness.counts(run))["Skipped/UpstreamFailed"] == WIDTH + 2


@pytest.mark.parametrize("width", [WIDE_FAN_IN - 1, WIDE_FAN_IN, WIDE_FAN_IN + 1])
async def test_fan_in_is_queued_on_both_sides_of_the_width_limit(
    harness: Harness, worker: Worker, width: int
) -> None:
    needs = [f"t{i}" for i in range(width)]
    plan = plans.dag(**{name: task() for name in needs}, end=task(*needs))
    run = await harness.submit(plan)
    await worker.run_all()
    assert await harness.state(run) == "Succeeded"
    assert await harness.state(run, "end") == "Succeeded"


async def test_wide_fan_in_is_skipped_when_one_of_many_fails(
    harness: Harness, worker: Worker
) -> None:
    needs = [f"t{i}" for i in range(3 * WIDE_FAN_IN)]
    plan = plans.dag(**{name: task() for name in needs}, end=task(*needs))
    run = await harness.submit(plan)
    await worker.run_all({"t77": Outcome.FAILED})
    assert await harness.state(run, "end") == "Skipped/UpstreamFailed"


async def test_paired_arrays_have_one_edge_per_element(harness: Harness, worker: Worker) -> None:
    plan = plans.dag(a=task(count=2000), b=task("a", count=2000, each=True))
    run = await harness.submit(plan)
    assert len(await harness.store.list_blockers(JobId(run + 2003))) == 1
    for _ in range(4):
        await _step(worker)
    assert await harness.state(run, "b") == "Succeeded"


async def test_chain_of_a_thousand_runs_one_job_at_a_time(harness: Harness, worker: Worker) -> None:
    length = 1000
    chain = {f"t{i}": task(f"t{i - 1}") for i in range(1, length)}
    run = await harness.submit(plans.dag(t0=task(), **chain))
    (claimed,) = await worker.claim()
    for i in range(1, length):
        completed = await worker.store.complete(worker.session.key, [report_on(claimed)], mint())
        (claimed,) = completed.claimed
        assert claimed.name == f"t{i}"
    await worker.end(claimed)
    await harness.propagate_all()
    assert await harness.state(run) == "Succeeded"


async def test_chain_of_a_thousand_is_skipped(harness: Harness, worker: Worker) -> None:
    length = 1000
    chain = {f"t{i}": task(f"t{i - 1}") for i in range(1, length)}
    run = await harness.submit(plans.dag(t0=task(), **chain))
    await worker.fail(await worker.claim_one())
    await harness.propagate_all()
    assert (await harness.counts(run))["Skipped/UpstreamFailed"] == length - 1


async def test_wide_workflow_is_cancelled_in_bounded_steps(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=WIDTH), b=task("a")))
    claimed = await worker.claim_one()
    assert await harness.store.cancel(run)
    assert not await worker.claim()
    await worker.end(claimed)
    await harness.propagate_all()
    assert await harness.counts(run) == {"Cancelled": WIDTH + 1}
    assert await harness.state(run) == "Cancelled"


def _without_inputs(plan: Plan) -> Plan:
    nodes = [dataclasses.replace(node, feeds_inputs=False) for node in plan.nodes]
    return dataclasses.replace(plan, nodes=nodes)


async def _finish(worker: Worker) -> None:
    """Run all ready jobs in few round trips."""
    while await _step(worker):
        pass


async def _step(worker: Worker) -> int:
    claimed = await worker.claim(MANY)
    await worker.store.complete(worker.session.key, [report_on(one) for one in claimed])
    while await worker.store.propagate(MANY):
        pass
    return len(claimed)

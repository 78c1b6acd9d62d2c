"""Upstreams that are other runs: linked by name, once, to the newest."""

import re

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.core import errors
from workron.core.plan import Kind, Plan
from workron.core.verdict import Condition
from workron.store.types import Outcome


def _down(*names: str, name: str = "down") -> Plan:
    return plans.job(name, outside=[plans.outside(up) for up in names])


async def test_job_waits_for_an_existing_run(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("up"))
    run = await harness.submit(_down("up"))
    assert await harness.state(run) == "Waiting/Upstream"
    await worker.end(await worker.claim_one())
    assert await harness.state(run) == "Queued"


async def test_job_waits_for_a_run_submitted_later(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(_down("up"))
    assert await harness.state(run) == "Waiting/Upstream"
    await harness.submit(plans.job("up"))
    assert await harness.state(run) == "Waiting/Upstream"
    await worker.end(await worker.claim_one())
    assert await harness.state(run) == "Queued"


async def test_job_is_queued_when_its_upstream_run_has_ended(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job("up"))
    await worker.run_all()
    run = await harness.submit(_down("up"))
    assert await harness.state(run) == "Queued"


async def test_job_waits_for_a_whole_workflow(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.dag("up", a=task(), b=task("a")))
    run = await harness.submit(plans.job("down", outside=[plans.outside("up", kind=Kind.WORKFLOW)]))
    await worker.end(await worker.claim_one())
    await harness.propagate_all()
    assert await harness.state(run) == "Waiting/Upstream"
    await worker.end(await worker.claim_one())
    await harness.propagate_all()
    assert await harness.state(run) == "Queued"


async def test_tasks_wait_for_different_runs(harness: Harness, worker: Worker) -> None:
    plan = plans.dag(a=task(outside=[plans.outside("up")], count=2), b=task())
    run = await harness.submit(plan)
    assert [one.name for one in await worker.claim(5)] == ["b"]
    await harness.submit(plans.job("up"))
    await worker.end(await worker.claim_one())
    assert await harness.state(run, "a[1]") == "Queued"


async def test_job_waits_for_all_of_several_runs(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("one"))
    await worker.run_all()
    await harness.submit(plans.job("two"))
    run = await harness.submit(_down("one", "two", "three"))
    await worker.run_all()
    assert await harness.state(run) == "Waiting/Upstream"
    await harness.submit(plans.job("three"))
    await worker.run_all()
    assert await harness.state(run) == "Succeeded"


@pytest.mark.parametrize("is_upstream_first", [True, False])
async def test_runs_of_one_call_are_linked(
    harness: Harness, worker: Worker, *, is_upstream_first: bool
) -> None:
    wanted = [plans.job("up"), _down("up")]
    if not is_upstream_first:
        wanted.reverse()
    await harness.store.submit(wanted)
    assert (await worker.claim_one()).name == "up"
    assert not await worker.claim()
    await worker.run_all()


async def test_other_kinds_and_namespaces_of_a_name_are_ignored(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(_down("up"))
    await harness.submit(plans.dag("up", a=task()))
    await harness.submit(plans.job("up", namespace="elsewhere"))
    await worker.run_all()
    await (await harness.worker(namespace="elsewhere")).run_all()
    assert await harness.state(run) == "Waiting/Upstream"


async def test_job_is_linked_to_the_newest_run_of_a_name(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("up"))
    await worker.run_all({"up": Outcome.FAILED})
    await harness.submit(plans.job("up"))
    run = await harness.submit(_down("up"))
    assert await harness.state(run) == "Waiting/Upstream"
    await worker.run_all()
    assert await harness.state(run) == "Succeeded"


async def test_later_runs_of_a_name_are_ignored(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("up"))
    held = await worker.claim_one()
    run = await harness.submit(_down("up"))
    await harness.submit(plans.job("up", digest="other"), supersedes=True)
    await worker.end(await worker.claim_one(), Outcome.FAILED)
    await harness.propagate_all()
    assert await harness.state(run) == "Waiting/Upstream"
    await worker.end(held)
    assert await harness.state(run) == "Queued"


async def test_many_wait_for_one_name(harness: Harness, worker: Worker) -> None:
    runs = [await harness.submit(_down("up", name=f"down{i}")) for i in range(100)]
    await harness.submit(plans.job("up"))
    await worker.end(await worker.claim_one())
    assert {await harness.state(run) for run in runs} == {"Queued"}


async def test_job_that_waits_for_itself_is_rejected(harness: Harness) -> None:
    with pytest.raises(errors.GraphError, match="down"):
        await harness.store.submit([_down("down")])
    assert not await harness.store.list_runs()


async def test_cycle_is_rejected_and_shown(harness: Harness) -> None:
    await harness.submit(_down("b", name="a"))
    await harness.submit(_down("c", name="b"))
    with pytest.raises(errors.GraphError) as refusal:
        await harness.store.submit([_down("a", name="c")])
    ring = re.search(r"\b[abc] -> [abc] -> [abc] -> [abc]\b", str(refusal.value))
    assert ring is not None
    assert ring[0].startswith(ring[0][-1])
    assert (
        str(refusal.value)
        == f"jobs wait for each other: {ring[0]}; remove one of these dependencies"
    )
    assert len(await harness.store.list_runs()) == 2


async def test_call_with_a_cycle_is_rejected_as_a_whole(harness: Harness) -> None:
    with pytest.raises(errors.GraphError):
        await harness.store.submit([plans.job("fine"), _down("b", name="a"), _down("a", name="b")])
    assert not await harness.store.list_runs()


async def test_cycle_through_a_workflow_is_rejected(harness: Harness) -> None:
    outside = [plans.outside("job")]
    await harness.submit(plans.dag("flow", a=task(), b=task("a", outside=outside)))
    back = plans.job("job", outside=[plans.outside("flow", kind=Kind.WORKFLOW)])
    with pytest.raises(errors.GraphError):
        await harness.store.submit([back])


async def test_cycle_is_found_quickly_when_many_paths_form_one(harness: Harness) -> None:
    layers = 30
    await harness.submit(plans.job("0", outside=[plans.outside("last")]))
    for layer in range(1, layers):
        outside = [plans.outside(f"{layer - 1}"), plans.outside(f"beside {layer - 1}")]
        await harness.submit(
            plans.job(f"{layer}", outside=outside), plans.job(f"beside {layer}", outside=outside)
        )
    with pytest.raises(errors.GraphError) as refusal:
        await harness.store.submit([_down(f"{layers - 1}", name="last")])
    assert str(refusal.value).count(" -> ") == layers + 1
    assert "remove one of these dependencies" in str(refusal.value)


async def test_ended_runs_are_not_part_of_a_cycle(harness: Harness, worker: Worker) -> None:
    await harness.submit(_down("up", name="middle"))
    ended = await harness.submit(_down("middle", name="ended"))
    await harness.store.cancel(ended)
    finished = plans.outside("ended", Condition.FINISHED)
    run = await harness.submit(plans.job("up", outside=[finished]))
    await worker.run_all()
    assert await harness.state(run) == "Succeeded"


async def test_other_runs_continue_when_a_cycle_was_rejected(
    harness: Harness, worker: Worker
) -> None:
    waiting = await harness.submit(_down("b", name="a"))
    with pytest.raises(errors.GraphError):
        await harness.store.submit([_down("a", name="b")])
    await harness.submit(plans.job("b", digest="other"))
    await worker.run_all()
    assert await harness.state(waiting) == "Succeeded"


async def test_ended_older_run_of_a_name_is_not_part_of_a_cycle(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job("a"))
    await worker.run_all()
    await harness.submit(_down("a", name="b"))
    run = await harness.submit(_down("b", name="a"))
    await worker.run_all()
    assert await harness.state(run) == "Succeeded"


async def test_result_of_a_run_is_an_input(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("up"))
    await harness.submit(_down("up"))
    await worker.end(await worker.claim_one(), result={"n": 1})
    assert (await worker.claim_one()).inputs == {"up": {"n": 1}}


async def test_job_is_skipped_when_its_cancelled_upstream_was_never_run(
    harness: Harness,
) -> None:
    up = await harness.submit(plans.job("up"))
    down = plans.job("down", outside=[plans.outside("up", Condition.SUCCEEDED)])
    run = await harness.submit(down)
    await harness.store.cancel(up)
    await harness.propagate_all()
    assert await harness.state(run) == "Skipped/UpstreamCancelled"


async def test_error_lists_exactly_the_runs_of_the_cycle(harness: Harness) -> None:
    good = [plans.job(f"good-{at}", outside=[plans.outside("nobody")]) for at in range(3)]
    one, two = _down("two", name="one"), _down("one", name="two")
    behind = _down("two", name="behind")
    with pytest.raises(errors.CycleError) as raised:
        await harness.store.submit([good[0], one, good[1], two, good[2], behind])
    assert raised.value.uids
    assert raised.value.uids <= {one.identity.uid, two.identity.uid}

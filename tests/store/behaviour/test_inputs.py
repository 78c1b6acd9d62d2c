"""Inputs of a claim: results of upstreams, limited by size, and unchanged."""

import dataclasses

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, Worker, report_on
from workron.core import payloads

# Bytes around the elements of `{"a": [...]}`: braces, name, and two for each of 20.
_AROUND = 2 + len('"a": ') + 2 * 20
_MOST_OF_ONE = 65_536


def _results_of(total: int) -> list[str | int | None]:
    """Make results of 20 elements with this many bytes in all; the last one has none."""
    rest = total - 15 * _MOST_OF_ONE - len("111") - len("null")
    return [*((size - 2) * "x" for size in [_MOST_OF_ONE] * 15 + [rest]), 1, 1, 1, None]


@pytest.mark.parametrize("more", [0, 1])
async def test_inputs_are_returned_up_to_the_limit(
    harness: Harness, worker: Worker, more: int
) -> None:
    results = _results_of(payloads.MAX_INPUT_BYTES - _AROUND + more)
    await harness.submit(plans.dag(a=task(count=20), b=task("a")))
    claimed = await worker.claim(20)
    ends = [report_on(one, result=results[one.index or 0]) for one in claimed]
    await worker.store.complete(worker.session.key, ends)
    await harness.propagate_all()
    found = await worker.claim_one()
    assert found.inputs_too_large == bool(more)
    assert found.inputs == (None if more else {"a": results})


async def test_inputs_are_limited_per_job_when_several_are_claimed(
    harness: Harness, worker: Worker
) -> None:
    flow = plans.dag(a=task(count=70), b=task("a"), c=task(), d=task("c"), e=task("a", "c"))
    await harness.submit(flow)
    ends = [report_on(one, result="x" * 16_000) for one in await worker.claim(MANY)]
    await worker.store.complete(worker.session.key, ends)
    await harness.propagate_all()
    found = await worker.claim_by_name()
    assert {name: one.inputs_too_large for name, one in found.items()} == {
        "b": True,
        "d": False,
        "e": True,
    }
    assert found["d"].inputs == {"c": "x" * 16_000}


async def test_elements_have_the_result_of_their_pair_and_of_a_shared_upstream(
    harness: Harness, worker: Worker
) -> None:
    flow = plans.dag(a=task(), b=task(), c=task("a", "b", count=3), d=task("b"), e=task("a"))
    await harness.submit(flow)
    claimed = await worker.claim_by_name()
    await worker.end(claimed["a"], result=1)
    await worker.end(claimed["b"], result=2)
    found = [(one.name, one.inputs) for one in await worker.claim(MANY)]
    assert found == [("c", {"a": 1, "b": 2})] * 3 + [("d", {"b": 2}), ("e", {"a": 1})]


async def test_claim_has_no_inputs_when_no_upstream_has_a_result(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.dag(a=task(count=2), b=task(), c=task("a", "b")))
    for one in await worker.claim(3):
        await worker.end(one)
    await harness.propagate_all()
    claimed = await worker.claim_one()
    assert (claimed.inputs, claimed.inputs_too_large) == (None, False)


async def test_job_is_claimed_when_it_expects_inputs_and_has_no_upstream(
    harness: Harness, worker: Worker
) -> None:
    plan = plans.job()
    fed = dataclasses.replace(plan.nodes[0], feeds_inputs=True)
    await harness.submit(dataclasses.replace(plan, nodes=[fed]))
    assert (await worker.claim_one()).inputs is None


@pytest.mark.parametrize("number", [1e22, 1e300, -0.0, 1.5, 10**30, 5e-324], ids=repr)
async def test_number_in_a_result_is_passed_on_unchanged(
    harness: Harness, worker: Worker, number: float
) -> None:
    await harness.submit(plans.dag(a=task(items=[number, [number]]), b=task("a")))
    claimed = await worker.claim(2)
    assert repr([one.item for one in claimed]) == repr([number, [number]])
    for one in claimed:
        await worker.end(one, result=number)
    assert repr(await harness.store.read_result(claimed[0].job)) == repr(number)
    await harness.propagate_all()
    assert repr((await worker.claim_one()).inputs) == repr({"a": [number, number]})

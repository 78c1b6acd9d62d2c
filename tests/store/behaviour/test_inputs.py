"""What a claim brings of its upstreams' results: by size first, and as it was written."""

import dataclasses

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, Worker, end_of
from workron.core import payloads

# What surrounds the elements of `{"a": [...]}`: the braces, the name, and two for each of 20.
_AROUND = 2 + len('"a": ') + 2 * 20
_MOST_OF_ONE = 65_536


def _results_of(total: int) -> list[str | int | None]:
    """Make the results of 20 elements, of the last one none, that have so many bytes together."""
    rest = total - 15 * _MOST_OF_ONE - len("111") - len("null")
    return [*((size - 2) * "x" for size in [_MOST_OF_ONE] * 15 + [rest]), 1, 1, 1, None]


@pytest.mark.parametrize("more", [0, 1])
async def test_inputs_are_given_up_to_the_last_byte_of_their_bound(
    harness: Harness, worker: Worker, more: int
) -> None:
    results = _results_of(payloads.MAX_INPUT_BYTES - _AROUND + more)
    await harness.submit(plans.dag(a=task(count=20), b=task("a")))
    claimed = await worker.claim(20)
    ends = [end_of(one, result=results[one.index or 0]) for one in claimed]
    await worker.store.complete(worker.session.key, ends)
    await harness.settle()
    found = await worker.claim_one()
    assert found.inputs_too_large == bool(more)
    assert found.inputs == (None if more else {"a": results})


async def test_each_is_judged_for_itself_when_only_one_of_a_call_has_too_large_inputs(
    harness: Harness, worker: Worker
) -> None:
    flow = plans.dag(a=task(count=70), b=task("a"), c=task(), d=task("c"), e=task("a", "c"))
    await harness.submit(flow)
    ends = [end_of(one, result="x" * 16_000) for one in await worker.claim(MANY)]
    await worker.store.complete(worker.session.key, ends)
    await harness.settle()
    found = await worker.claim_by_name()
    assert {name: one.inputs_too_large for name, one in found.items()} == {
        "b": True,
        "d": False,
        "e": True,
    }
    assert found["d"].inputs == {"c": "x" * 16_000}


async def test_elements_are_given_both_their_own_upstream_and_the_one_they_share(
    harness: Harness, worker: Worker
) -> None:
    flow = plans.dag(a=task(), b=task(), c=task("a", "b", count=3), d=task("b"), e=task("a"))
    await harness.submit(flow)
    claimed = await worker.claim_by_name()
    await worker.end(claimed["a"], result=1)
    await worker.end(claimed["b"], result=2)
    found = [(one.name, one.inputs) for one in await worker.claim(MANY)]
    assert found == [("c", {"a": 1, "b": 2})] * 3 + [("d", {"b": 2}), ("e", {"a": 1})]


async def test_there_are_no_inputs_when_no_upstream_left_a_result(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.dag(a=task(count=2), b=task(), c=task("a", "b")))
    for one in await worker.claim(3):
        await worker.end(one)
    await harness.settle()
    claimed = await worker.claim_one()
    assert (claimed.inputs, claimed.inputs_too_large) == (None, False)


async def test_job_is_claimed_though_it_was_to_have_inputs_and_waits_for_nobody(
    harness: Harness, worker: Worker
) -> None:
    plan = plans.job()
    fed = dataclasses.replace(plan.nodes[0], feeds_inputs=True)
    await harness.submit(dataclasses.replace(plan, nodes=[fed]))
    assert (await worker.claim_one()).inputs is None


@pytest.mark.parametrize("number", [1e22, 1e300, -0.0, 1.5, 10**30, 5e-324], ids=repr)
async def test_number_reaches_a_command_as_it_was_written(
    harness: Harness, worker: Worker, number: float
) -> None:
    await harness.submit(plans.dag(a=task(items=[number, [number]]), b=task("a")))
    claimed = await worker.claim(2)
    assert repr([one.item for one in claimed]) == repr([number, [number]])
    for one in claimed:
        await worker.end(one, result=number)
    assert repr(await harness.store.read_result(claimed[0].job)) == repr(number)
    await harness.settle()
    assert repr((await worker.claim_one()).inputs) == repr({"a": [number, number]})

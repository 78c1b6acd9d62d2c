"""submit: an acknowledged run is stored completely, and once."""

import asyncio
import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.core import errors
from workron.core.plan import Kind
from workron.core.states import State


async def test_job_is_queued_when_it_has_no_upstreams(harness: Harness) -> None:
    run = await harness.submit(plans.job("one"))
    assert await harness.states(run) == {"one": "Queued"}


async def test_tasks_wait_when_they_have_upstreams(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a")))
    assert await harness.states(run) == {
        "flow": "Waiting/Upstream",
        "a": "Queued",
        "b": "Waiting/Upstream",
    }


async def test_answer_says_whether_the_run_is_new(harness: Harness) -> None:
    (submitted,) = await harness.store.submit([plans.job()])
    assert submitted.is_new


async def test_submission_of_nothing_has_no_answers(harness: Harness) -> None:
    assert not await harness.store.submit([])
    assert not await harness.store.list_runs()


async def test_jobs_have_the_ids_after_their_run(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task(count=2), c=task("b")))
    rows = await harness.store.list_jobs(run)
    assert [row.job - run for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row.group_id and row.group_id - run for row in rows] == [None, 0, 0, 2, 2, 0]
    assert [row.index for row in rows] == [None, None, None, 0, 1, None]


async def test_later_runs_have_higher_ids(harness: Harness) -> None:
    first = await harness.submit(plans.job("one"))
    second = await harness.submit(plans.job("two"))
    assert second > first


async def test_plans_are_stored_in_order_when_several_are_given(harness: Harness) -> None:
    wanted = [plans.job("one"), plans.dag(a=task()), plans.job("two")]
    submitted = await harness.store.submit(wanted)
    kinds = [(await harness.row(one.run)).kind for one in submitted]
    names = [(await harness.row(one.run)).name for one in submitted]
    assert kinds == [Kind.JOB, Kind.WORKFLOW, Kind.JOB]
    assert names == ["one", "flow", "two"]


async def test_nothing_is_stored_when_one_plan_is_rejected(harness: Harness) -> None:
    await harness.submit(plans.job("taken"))
    good, bad = plans.job("good"), plans.job("taken", digest="other")
    with pytest.raises(errors.NameTakenError, match="taken"):
        await harness.store.submit([good, bad])
    assert await harness.store.find_run(plans.NAMESPACE, Kind.JOB, "good") is None
    assert len(await harness.store.list_runs()) == 1


async def test_known_uid_is_acknowledged_unchanged(harness: Harness) -> None:
    plan = plans.job()
    run = await harness.submit(plan)
    (repeated,) = await harness.store.submit([dataclasses.replace(plan, digest=lambda: "other")])
    assert (repeated.run, repeated.is_new) == (run, False)
    assert len(await harness.store.list_runs()) == 1


async def test_known_uid_is_acknowledged_when_its_run_has_ended(
    harness: Harness, worker: Worker
) -> None:
    plan = plans.job()
    run = await harness.submit(plan)
    await worker.run_all()
    (repeated,) = await harness.store.submit([plan])
    assert (repeated.run, repeated.is_new) == (run, False)


async def test_known_uid_is_acknowledged_when_its_name_was_superseded(harness: Harness) -> None:
    plan = plans.job()
    run = await harness.submit(plan)
    await harness.submit(plans.again(plan, digest="other"), supersedes=True)
    (repeated,) = await harness.store.submit([plan])
    assert (repeated.run, repeated.is_new) == (run, False)


async def test_batch_is_answered_in_order_when_some_runs_are_known(harness: Harness) -> None:
    known = plans.job("known")
    run = await harness.submit(known)
    answers = await harness.store.submit([plans.job("one"), known, plans.job("two")])
    assert [answer.is_new for answer in answers] == [True, False, True]
    assert answers[1].run == run


async def test_repetition_in_a_batch_is_acknowledged_as_the_first(harness: Harness) -> None:
    plan = plans.job("one")
    answers = await harness.store.submit([plan, plan, plans.again(plan), plans.job("two")])
    assert [answer.is_new for answer in answers] == [True, False, False, True]
    assert len({answer.run for answer in answers}) == 2
    assert len(await harness.store.list_runs()) == 2


async def test_batch_is_rejected_when_two_runs_of_a_name_differ(harness: Harness) -> None:
    with pytest.raises(errors.NameTakenError, match="mine"):
        await harness.store.submit([plans.job("mine"), plans.job("mine", digest="other")])
    assert not await harness.store.list_runs()


async def test_name_passes_to_the_last_run_of_a_superseding_batch(harness: Harness) -> None:
    batch = [plans.job("mine", digest=digest) for digest in ("a", "b", "c")]
    answers = await harness.store.submit(batch, supersedes=True)
    assert all(answer.is_new for answer in answers)
    found = await harness.store.find_run(plans.NAMESPACE, Kind.JOB, "mine")
    assert found is not None
    assert found.run == answers[-1].run


async def test_answer_says_whether_the_run_is_suspended(harness: Harness) -> None:
    plan, held = plans.job("one"), plans.job("two", is_suspended=True)
    first = await harness.store.submit([plan, held])
    assert [answer.is_suspended for answer in first] == [False, True]
    await harness.store.suspend(first[0].run)
    await harness.store.resume(first[1].run)
    for again in ([plan, held], [plans.again(plan), plans.again(held)]):
        assert [answer.is_suspended for answer in await harness.store.submit(again)] == [
            True,
            False,
        ]


async def test_unfinished_run_is_acknowledged_when_name_and_digest_are_equal(
    harness: Harness,
) -> None:
    plan = plans.dag(a=task())
    run = await harness.submit(plan)
    (repeated,) = await harness.store.submit([plans.again(plan)])
    assert (repeated.run, repeated.is_new) == (run, False)
    assert len(await harness.store.list_runs()) == 1


async def test_name_is_rejected_when_its_unfinished_run_has_another_digest(
    harness: Harness,
) -> None:
    await harness.submit(plans.job("mine"))
    with pytest.raises(errors.NameTakenError, match="mine"):
        await harness.store.submit([plans.job("mine", digest="other")])


async def test_name_passes_to_the_new_run_when_it_supersedes(
    harness: Harness, worker: Worker
) -> None:
    older = await harness.submit(plans.job("mine"))
    newer = await harness.submit(plans.job("mine", digest="other"), supersedes=True)
    found = await harness.store.find_run(plans.NAMESPACE, Kind.JOB, "mine")
    assert found is not None
    assert found.run == newer
    await worker.run_all()
    assert await harness.state(older) == await harness.state(newer) == "Succeeded"


async def test_superseding_submission_is_acknowledged_when_nothing_has_changed(
    harness: Harness,
) -> None:
    plan = plans.job()
    run = await harness.submit(plan)
    (repeated,) = await harness.store.submit([plans.again(plan)], supersedes=True)
    assert (repeated.run, repeated.is_new) == (run, False)


@pytest.mark.parametrize("digest", ["first", "other"])
async def test_name_is_free_when_its_run_has_ended(
    harness: Harness, worker: Worker, digest: str
) -> None:
    plan = plans.job()
    older = await harness.submit(plan)
    await worker.run_all()
    newer = await harness.submit(plans.again(plan, digest=digest))
    assert newer != older
    assert await harness.state(newer) == "Queued"


async def test_names_are_distinct_when_kind_or_namespace_differs(harness: Harness) -> None:
    await harness.submit(plans.job("same"))
    await harness.submit(plans.job("same", digest="b", namespace="elsewhere"))
    await harness.submit(plans.dag("same", {"digest": "c"}, a=task()))
    assert len(await harness.store.list_runs()) == 3


async def test_jobs_wait_when_submitted_as_suspended(harness: Harness, worker: Worker) -> None:
    plan = plans.dag("flow", {"is_suspended": True}, a=task(), b=task("a"))
    run = await harness.submit(plan)
    assert await harness.state(run, "a") == "Waiting/Suspended"
    assert await harness.state(run, "b") == "Waiting/Suspended"
    assert not await worker.claim()


async def test_job_is_scheduled_when_its_start_is_in_the_future(
    harness: Harness, worker: Worker
) -> None:
    start = harness.database.clock.now() + timedelta(hours=1)
    run = await harness.submit(plans.job(start_after=start))
    row = await harness.row(run)
    assert (row.state, row.reason, row.due) == (State.WAITING, "Scheduled", start)
    assert not await worker.claim()


async def test_job_is_queued_when_its_start_has_passed(harness: Harness) -> None:
    start = harness.database.clock.now() - timedelta(hours=1)
    run = await harness.submit(plans.job(start_after=start))
    assert await harness.state(run) == "Queued"


async def test_pool_is_created_when_it_is_missing(harness: Harness) -> None:
    await harness.submit(plans.job(pool="large"))
    assert (await harness.store.pool_demand())[plans.NAMESPACE, "large"].ready == 1
    worker = await harness.worker(pool="large")
    assert (await worker.claim_one()).name == "job"


async def test_one_run_is_stored_when_many_submit_the_same_at_once(harness: Harness) -> None:
    plan = plans.dag(a=task(), b=task("a"))
    stores = [await harness.open_another() for _ in range(5)]
    answers = await asyncio.gather(
        *(store.submit([plan if i % 2 else plans.again(plan)]) for i, store in enumerate(stores))
    )
    assert len({answer.run for (answer,) in answers}) == 1
    assert sum(answer.is_new for (answer,) in answers) == 1


async def test_one_run_is_stored_when_many_submit_different_content_at_once(
    harness: Harness,
) -> None:
    stores = [await harness.open_another() for _ in range(5)]
    answers = await asyncio.gather(
        *(store.submit([plans.job(digest=str(i))]) for i, store in enumerate(stores)),
        return_exceptions=True,
    )
    refused = [one for one in answers if isinstance(one, errors.NameTakenError)]
    assert len(refused) == 4
    assert len(await harness.store.list_runs()) == 1


async def test_batches_do_not_block_each_other_when_their_names_overlap(harness: Harness) -> None:
    one, two = await harness.open_another(), await harness.open_another()
    for round_number in range(10):
        names = [f"{letter}{round_number}" for letter in "abcd"]
        await asyncio.gather(
            one.submit([plans.job(name) for name in names]),
            two.submit([plans.job(name) for name in reversed(names)]),
        )
    assert len(await harness.store.list_runs()) == 40


@pytest.mark.parametrize("text", ["\0", "\ud800", "\U0001f9ea", "'; --", "\x7f\x1b[31m"])
async def test_unusual_text_is_returned_unchanged_or_rejected(harness: Harness, text: str) -> None:
    plan = plans.job("odd", metadata={"labels": {"text": text}})
    try:
        run = await harness.submit(plan)
    except errors.StoreDataError:
        assert not await harness.store.list_runs()
        return
    (row,) = await harness.store.list_runs()
    assert (row.run, row.metadata) == (run, {"labels": {"text": text}})


@pytest.mark.parametrize("item", ["a\0b", {"a": "\ud800"}, float("nan")], ids=ascii)
async def test_call_is_rejected_when_an_item_cannot_be_stored(
    harness: Harness, worker: Worker, item: Any
) -> None:
    bad = plans.dag("bad", a=task(items=["good", item]))
    with pytest.raises(errors.StoreDataError, match="cannot store a value"):
        await harness.store.submit([plans.job("good"), bad])
    assert not await harness.store.list_runs()
    run = await harness.submit(plans.job("good"))
    await worker.run_all()
    assert await harness.state(run) == "Succeeded"

"""Tasks of `finally`: they run when all other tasks have ended, however they ended."""

import functools
from datetime import timedelta
from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.core.plan import Plan
from workron.core.verdict import Condition
from workron.store.types import Outcome, RunUpdate, Signal

FINISHED = Condition.FINISHED


def flow(last: plans.Task | None = None, /, **about: Any) -> Plan:
    """Plan the tasks `a` and then `b`, and `z` of `finally`."""
    return plans.dag("flow", {"last": {"z": last or task()}, **about}, a=task(), b=task("a"))


async def run_tasks(harness: Harness, worker: Worker) -> None:
    """Let the tasks `a` and `b` succeed."""
    for _ in range(2):
        await worker.end(await worker.claim_one())
    await harness.propagate_all()


async def claim_and_end(worker: Worker) -> list[str]:
    """Claim all that is ready, end it as succeeded, and return the names."""
    claimed = await worker.claim(9)
    for one in claimed:
        await worker.end(one)
    return [one.name for one in claimed]


async def test_finally_starts_when_all_tasks_have_ended(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(flow())
    assert await claim_and_end(worker) == ["a"]
    assert await harness.state(run, "z") == "Waiting/Upstream"
    assert await claim_and_end(worker) == ["b"]
    await harness.propagate_all()
    [last] = await worker.claim(9)
    assert (last.name, last.run_state) == ("z", "Succeeded")
    assert await harness.state(run) == "Running"
    await worker.end(last)
    await harness.propagate_all()
    assert await harness.state(run) == "Succeeded"


async def test_finally_runs_when_a_task_fails_and_the_run_fails(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(flow())
    await worker.end(await worker.claim_one(), Outcome.FAILED)
    await harness.propagate_all()
    [last] = await worker.claim(9)
    assert (last.name, last.run_state) == ("z", "Failed")
    await worker.end(last)
    await harness.propagate_all()
    assert await harness.states(run) == {
        "flow": "Failed/MemberFailed",
        "a": "Failed/ExitCode",
        "b": "Skipped/UpstreamFailed",
        "z": "Succeeded",
    }


async def test_run_fails_when_a_task_of_finally_fails(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(flow())
    await run_tasks(harness, worker)
    await worker.end(await worker.claim_one(), Outcome.FAILED)
    await harness.propagate_all()
    assert await harness.state(run) == "Failed/MemberFailed"


async def test_run_succeeds_when_a_failure_of_finally_is_allowed(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(flow(task(allow_failure=True)))
    await run_tasks(harness, worker)
    await worker.end(await worker.claim_one(), Outcome.FAILED)
    await harness.propagate_all()
    assert await harness.state(run) == "Succeeded"


async def test_tasks_of_finally_can_depend_on_each_other(harness: Harness, worker: Worker) -> None:
    last = {"y": task(count=2), "z": task(when={"y": FINISHED})}
    run = await harness.submit(plans.dag("flow", {"last": last}, a=task()))
    await worker.end(await worker.claim_one())
    await harness.propagate_all()
    claimed = await worker.claim(9)
    assert [one.name for one in claimed] == ["y", "y"]
    for one in claimed:
        await worker.end(one, Outcome.FAILED)
    await harness.propagate_all()
    assert await claim_and_end(worker) == ["z"]
    await harness.propagate_all()
    assert await harness.state(run) == "Failed/MemberFailed"


async def test_finally_runs_when_the_run_is_cancelled(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(flow())
    first = await worker.claim_one()
    assert await harness.store.cancel(run)
    assert not await worker.claim(9)
    await worker.end(first)
    await harness.propagate_all()
    [last] = await worker.claim(9)
    assert (last.name, last.run_state) == ("z", "Cancelled")
    assert {held.signal for held in (await worker.heartbeat()).held} == {None}
    await worker.end(last)
    await harness.propagate_all()
    assert await harness.states(run) == {
        "flow": "Cancelled",
        "a": "Cancelled",
        "b": "Cancelled",
        "z": "Succeeded",
    }


async def test_finally_is_cancelled_when_the_cancellation_is_forced(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(flow())
    assert await harness.store.cancel(run, force=True)
    await harness.propagate_all()
    assert set((await harness.states(run)).values()) == {"Cancelled"}
    assert not await worker.claim(9)


async def test_running_finally_is_signalled_when_a_cancelled_run_is_cancelled_by_force(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(flow())
    assert await harness.store.cancel(run)
    await harness.propagate_all()
    last = await worker.claim_one()
    assert await harness.store.cancel(run)
    assert [held.signal for held in (await worker.heartbeat()).held] == [None]
    assert await harness.store.cancel(run, force=True)
    assert [held.signal for held in (await worker.heartbeat()).held] == [Signal.CANCEL]
    await worker.end(last)
    await harness.propagate_all()
    assert await harness.state(run) == "Cancelled"


@pytest.mark.parametrize("is_suspended_first", [True, False])
async def test_suspension_does_not_keep_finally_when_the_run_is_cancelled(
    harness: Harness, worker: Worker, *, is_suspended_first: bool
) -> None:
    run = await harness.submit(flow(is_suspended=is_suspended_first))
    if not is_suspended_first:
        assert await harness.store.suspend(run)
    assert await harness.store.cancel(run)
    await harness.propagate_all()
    assert [one.name for one in await worker.claim(9)] == ["z"]


async def test_suspended_finally_goes_on_when_the_run_is_cancelled(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(flow())
    await run_tasks(harness, worker)
    last = await worker.claim_one()
    assert await harness.store.suspend(run)
    await worker.release(last)
    assert await harness.state(run, "z") == "Waiting/Suspended"
    assert await harness.store.cancel(run)
    assert [one.name for one in await worker.claim(9)] == ["z"]


async def test_deadline_of_a_run_cancels_its_tasks_and_the_run_fails(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(flow(deadline_seconds=60))
    first = await worker.claim_one()
    await harness.advance(timedelta(seconds=61))
    await harness.expire()
    await harness.propagate_all()
    assert [held.signal for held in (await worker.heartbeat()).held] == [Signal.CANCEL]
    await worker.end(first)
    await harness.propagate_all()
    [last] = await worker.claim(9)
    assert (last.name, last.run_state) == ("z", "Failed")
    await worker.end(last)
    await harness.propagate_all()
    assert await harness.states(run) == {
        "flow": "Failed/DeadlineExceeded",
        "a": "Cancelled",
        "b": "Cancelled",
        "z": "Succeeded",
    }


async def test_deadline_of_a_run_without_finally(harness: Harness) -> None:
    about = {"deadline_seconds": 60}
    run = await harness.submit(plans.dag("flow", about, a=task(), b=task("a", count=2)))
    await harness.advance(timedelta(seconds=61))
    await harness.expire()
    await harness.propagate_all()
    states = await harness.states(run)
    assert states.pop("flow") == "Failed/DeadlineExceeded"
    assert set(states.values()) == {"Cancelled"}


async def test_deadline_has_no_effect_when_the_tasks_have_ended(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(flow(deadline_seconds=60))
    await run_tasks(harness, worker)
    last = await worker.claim_one()
    await harness.advance(timedelta(seconds=61))
    await harness.expire()
    await harness.propagate_all()
    await worker.end(last)
    await harness.propagate_all()
    assert await harness.state(run) == "Succeeded"


async def test_deadline_has_no_effect_when_the_run_was_cancelled(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(flow(deadline_seconds=60))
    first = await worker.claim_one()
    assert await harness.store.cancel(run)
    await harness.advance(timedelta(seconds=61))
    await harness.expire()
    await worker.end(first)
    await harness.propagate_all()
    await worker.end(await worker.claim_one())
    await harness.propagate_all()
    assert await harness.state(run) == "Cancelled"


async def test_first_failure_cancels_the_other_tasks_when_the_run_is_fail_fast(
    harness: Harness, worker: Worker
) -> None:
    plan = plans.dag("flow", {"is_fail_fast": True}, a=task(), b=task(), c=task("b"))
    run = await harness.submit(plan)
    first, second = await worker.claim(9)
    await worker.end(first, Outcome.FAILED)
    await harness.propagate_all()
    assert [held.signal for held in (await worker.heartbeat()).held] == [Signal.CANCEL]
    await worker.end(second)
    await harness.propagate_all()
    assert await harness.states(run) == {
        "flow": "Failed/MemberFailed",
        "a": "Failed/ExitCode",
        "b": "Cancelled",
        "c": "Cancelled",
    }


async def test_fail_fast_run_goes_on_when_the_failure_is_allowed(
    harness: Harness, worker: Worker
) -> None:
    some = {"a": task(allow_failure=True), "b": task(count=2, max_failures=1)}
    run = await harness.submit(plans.dag("flow", {"is_fail_fast": True}, **some, c=task("b")))
    first, second, third = await worker.claim(9)
    await worker.end(first, Outcome.FAILED)
    await worker.end(second, Outcome.FAILED)
    await harness.propagate_all()
    await worker.end(third)
    await harness.propagate_all()
    await worker.end(await worker.claim_one())
    await harness.propagate_all()
    assert await harness.state(run) == "Succeeded"


@pytest.mark.parametrize("max_failures", [None, 0])
async def test_failed_element_cancels_a_fail_fast_run(
    harness: Harness, worker: Worker, max_failures: int | None
) -> None:
    some = {"a": task(count=1, max_failures=max_failures), "b": task()}
    run = await harness.submit(plans.dag("flow", {"is_fail_fast": True}, **some))
    first, second = await worker.claim(9)
    await worker.end(first, Outcome.FAILED)
    await harness.propagate_all()
    await worker.end(second)
    await harness.propagate_all()
    assert await harness.state(run, "b") == "Cancelled"


async def test_failure_of_finally_does_not_cancel_a_fail_fast_run(
    harness: Harness, worker: Worker
) -> None:
    last = {"y": task(), "z": task()}
    plan = plans.dag("flow", {"last": last, "is_fail_fast": True}, a=task())
    run = await harness.submit(plan)
    await worker.end(await worker.claim_one())
    await harness.propagate_all()
    first, second = await worker.claim(9)
    await worker.end(first, Outcome.FAILED)
    await harness.propagate_all()
    assert [held.signal for held in (await worker.heartbeat()).held] == [None]
    await worker.end(second)
    await harness.propagate_all()
    assert await harness.state(run) == "Failed/MemberFailed"
    assert not (await harness.store.list_runs())[0].is_cancelled


async def test_finally_waits_for_all_elements_of_all_arrays(
    harness: Harness, worker: Worker
) -> None:
    plan = plans.dag("flow", {"last": {"z": task(count=2)}}, a=task(count=3), b=task())
    run = await harness.submit(plan)
    claimed = await worker.claim(9)
    assert [one.name for one in claimed] == ["a", "a", "a", "b"]
    for one in claimed[:-1]:
        await worker.end(one)
    await harness.propagate_all()
    assert not await worker.claim(9)
    await worker.end(claimed[-1])
    await harness.propagate_all()
    assert await claim_and_end(worker) == ["z", "z"]
    await harness.propagate_all()
    assert await harness.state(run) == "Succeeded"


@pytest.mark.parametrize("cause", ["deadline", "failure"])
async def test_run_counts_as_cancelled_only_when_that_was_requested(
    harness: Harness, worker: Worker, cause: str
) -> None:
    about: dict[str, Any] = {"deadline_seconds": 60, "is_fail_fast": True}
    run = await harness.submit(flow(**about))
    if cause == "failure":
        await worker.end(await worker.claim_one(), Outcome.FAILED)
    else:
        await harness.advance(timedelta(seconds=61))
        await harness.expire()
    await harness.propagate_all()
    [row] = await harness.store.list_runs()
    assert not row.is_cancelled
    assert await harness.store.cancel(run)
    [row] = await harness.store.list_runs()
    assert row.is_cancelled


async def test_new_object_is_a_new_run_when_the_old_one_was_cancelled(
    harness: Harness, worker: Worker
) -> None:
    plan = flow()
    run = await harness.submit(plan)
    assert await harness.store.cancel(run)
    again = await harness.submit(plans.again(plan), supersedes=True)
    assert again != run
    assert sorted(one.name for one in await worker.claim(9)) == ["a"]


async def test_priority_of_a_cancelled_run_can_change(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(flow(generation=1))
    update = functools.partial(RunUpdate, is_cancelled=True, is_suspended=False)
    assert await harness.store.update_run(run, update(2, priority=0))
    assert await harness.store.update_run(run, update(3, priority=7))
    assert not await harness.store.update_run(run, update(4, priority=7))
    assert (await harness.row(run, "z")).priority == 7
    await harness.propagate_all()
    assert [one.name for one in await worker.claim(9)] == ["z"]
    assert await harness.store.update_run(run, update(5, priority=7, is_forced=True))
    assert [held.signal for held in (await worker.heartbeat()).held] == [Signal.CANCEL]

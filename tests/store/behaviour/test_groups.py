"""Arrays and workflows: groups that end when their members have."""

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, Worker
from workron.core.plan import Kind
from workron.core.verdict import Condition
from workron.store.types import Outcome

FAILED, FINISHED = Condition.FAILED, Condition.FINISHED


async def test_workflow_succeeds_when_all_its_tasks_do(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task(count=3)))
    await worker.run_all()
    assert set((await harness.states(run)).values()) == {"Succeeded"}


async def test_workflow_runs_while_some_but_not_all_have_run(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a")))
    claimed = await worker.claim_one()
    assert await harness.state(run) == "Running"
    await worker.end(claimed)
    assert await harness.state(run) == "Running"


async def test_array_waits_when_none_of_its_elements_has_run(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a", count=2)))
    await worker.claim_one()
    assert await harness.state(run, "b") == "Waiting/Upstream"


async def test_groups_are_never_claimed(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(count=2), b=task()))
    claimed = await worker.claim(MANY)
    kinds = {row.job: row.kind for row in await harness.store.list_jobs(run)}
    assert {kinds[one.job] for one in claimed} == {Kind.JOB}
    assert len(claimed) == 3


async def test_workflow_fails_when_a_task_fails(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task()))
    claimed = await worker.claim_by_name()
    await worker.fail(claimed["a"])
    await harness.propagate_all()
    assert await harness.state(run) == "Running"
    await worker.end(claimed["b"])
    await harness.propagate_all()
    assert await harness.state(run) == "Failed/MemberFailed"


@pytest.mark.parametrize("when", [FAILED, FINISHED])
async def test_workflow_fails_when_another_task_runs_after_the_failure(
    harness: Harness, worker: Worker, when: Condition
) -> None:
    run = await harness.submit(plans.dag(a=task(), after=task(when={"a": when})))
    await worker.run_all({"a": Outcome.FAILED})
    states = await harness.states(run)
    assert states == {"flow": "Failed/MemberFailed", "a": "Failed/ExitCode", "after": "Succeeded"}


@pytest.mark.parametrize("count", [None, 2])
async def test_workflow_succeeds_when_the_failure_is_allowed(
    harness: Harness, worker: Worker, count: int | None
) -> None:
    tasks = {"a": task(allow_failure=True, count=count), "b": task("a"), "c": task()}
    run = await harness.submit(plans.dag(**tasks))
    await worker.run_all({"a": Outcome.FAILED})
    states = await harness.states(run)
    assert (states["flow"], states["b"], states["c"]) == (
        *("Succeeded", "Skipped/UpstreamFailed", "Succeeded"),
    )


async def test_workflow_fails_when_another_task_than_the_allowed_one_fails(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(allow_failure=True), b=task()))
    await worker.run_all({"a": Outcome.FAILED, "b": Outcome.FAILED})
    assert await harness.state(run) == "Failed/MemberFailed"


@pytest.mark.parametrize(
    ("failed", "expected"), [(0, "Succeeded"), (2, "Succeeded"), (3, "Failed/MemberFailed")]
)
async def test_array_fails_when_more_elements_fail_than_allowed(
    harness: Harness, worker: Worker, failed: int, expected: str
) -> None:
    run = await harness.submit(plans.dag(a=task(count=5, max_failures=2), b=task("a")))
    for number, claimed in enumerate(await worker.claim(5)):
        await (worker.fail if number < failed else worker.end)(claimed)
    await harness.propagate_all()
    await worker.run_all()
    states = await harness.states(run)
    downstream = "Succeeded" if expected == "Succeeded" else "Skipped/UpstreamFailed"
    assert (states["a"], states["b"], states["flow"]) == (expected, downstream, expected)


async def test_workflow_is_failed_when_a_job_failed_before_the_cancellation(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task(count=2)))
    claimed = await worker.claim(3)
    await worker.fail(claimed[0])
    await harness.store.cancel(run)
    await worker.release(*claimed[1:])
    await harness.propagate_all()
    states = await harness.states(run)
    assert (states["a"], states["c"]) == ("Failed/ExitCode", "Cancelled")
    assert states["flow"] == "Failed/MemberFailed"


async def test_array_is_cancelled_when_failures_are_allowed_and_it_was_cancelled(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=2, max_failures=1)))
    first, second = await worker.claim(2)
    await worker.fail(first)
    await harness.store.cancel(run)
    await worker.release(second)
    await harness.propagate_all()
    assert await harness.state(run, "a") == "Cancelled"


async def test_array_succeeds_when_all_its_elements_may_fail(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=2, max_failures=2)))
    await worker.run_all({"a": Outcome.FAILED})
    assert set((await harness.states(run)).values()) == {"Succeeded", "Failed/ExitCode"}


@pytest.mark.parametrize(
    ("max_failures", "outcome", "expected"),
    [
        (None, Outcome.SUCCEEDED, "Skipped/UpstreamFailed"),
        (0, Outcome.SUCCEEDED, "Skipped/UpstreamFailed"),
        (1, Outcome.SUCCEEDED, "Succeeded"),
        (1, Outcome.FAILED, "Failed/MemberFailed"),
        (2, Outcome.FAILED, "Succeeded"),
    ],
)
async def test_element_counts_as_failed_when_its_upstream_failed(
    harness: Harness, worker: Worker, max_failures: int | None, outcome: Outcome, expected: str
) -> None:
    second = task("a", count=2, each=True, max_failures=max_failures)
    run = await harness.submit(plans.dag(a=task(count=2, max_failures=1), b=second))
    failed, ended = await worker.claim(2)
    await worker.fail(failed)
    await worker.end(ended)
    await harness.propagate_all()
    await worker.run_all({"b": outcome})
    assert await harness.state(run, "b") == expected


async def test_workflow_succeeds_when_tasks_were_not_needed(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), rescue=task(when={"a": FAILED})))
    await worker.run_all()
    stands = await harness.states(run)
    assert (stands["flow"], stands["rescue"]) == ("Succeeded", "Skipped/NotNeeded")


async def test_array_fails_when_an_element_fails(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(count=3), b=task("a")))
    one, two, three = await worker.claim(3)
    await worker.fail(two)
    await worker.end(one)
    await harness.propagate_all()
    assert await harness.state(run, "a") == "Running"
    await worker.end(three)
    await harness.propagate_all()
    stands = await harness.states(run)
    assert (stands["a"], stands["b"]) == ("Failed/MemberFailed", "Skipped/UpstreamFailed")


async def test_array_runs_when_it_needs_the_failure_of_another(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=2), b=task(when={"a": FAILED}, count=2)))
    await worker.run_all({"a": Outcome.FAILED})
    stands = await harness.states(run)
    assert (stands["a"], stands["b"]) == ("Failed/MemberFailed", "Succeeded")
    assert stands["flow"] == "Failed/MemberFailed"


@pytest.mark.parametrize(
    ("when", "outcome", "fate"),
    [
        (FAILED, Outcome.SUCCEEDED, "Skipped/NotNeeded"),
        (Condition.SUCCEEDED, Outcome.FAILED, "Skipped/UpstreamFailed"),
    ],
)
async def test_array_is_skipped_when_its_elements_are(
    harness: Harness, worker: Worker, when: Condition, outcome: Outcome, fate: str
) -> None:
    plan = plans.dag(a=task(), b=task(when={"a": when}, count=3), c=task("b"))
    run = await harness.submit(plan)
    await worker.run_all({"a": outcome})
    stands = await harness.states(run)
    assert {stands[name] for name in ("b", "b[0]", "b[1]", "b[2]", "c")} == {fate}


async def test_element_waits_only_for_its_pair(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(count=3), b=task("a", count=3, each=True)))
    claimed = {one.index: one for one in await worker.claim(3)}
    await worker.end(claimed[1])
    await worker.fail(claimed[2])
    stands = await harness.states(run)
    assert stands["b[0]"] == "Waiting/Upstream"
    assert stands["b[1]"] == "Queued"
    assert stands["b[2]"] == "Skipped/UpstreamFailed"


async def test_array_of_pairs_is_skipped_when_one_element_is(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=2), b=task("a", count=2, each=True)))
    one, two = await worker.claim(2)
    await worker.fail(one)
    await worker.end(two)
    await worker.run_all()
    stands = await harness.states(run)
    assert stands[f"b[{two.index}]"] == "Succeeded"
    assert stands["b"] == "Skipped/UpstreamFailed"
    assert stands["flow"] == "Failed/MemberFailed"


async def test_workflow_ends_when_its_last_task_is_skipped(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task("b")))
    await worker.run_all({"a": Outcome.FAILED})
    row = await harness.row(run)
    assert row.finished_at == harness.database.clock.now()
    assert await harness.state(run) == "Failed/MemberFailed"

"""The status of a Workflow: counts, failures and why its jobs cannot be claimed."""

from tests.controller import cluster
from tests.controller.jobs.conftest import StatusHarness
from workron.core.states import Reason
from workron.store.types import Outcome, Session
from workron_controller.kube.conditions import StatusReason


async def test_jobs_are_counted_every_few_seconds_and_at_the_end(
    harness: StatusHarness, session: Session
) -> None:
    await harness.apply(cluster.workflow("flow", *({"name": f"t{at}"} for at in range(5))))
    writes = [len(await harness.sync())]
    for _ in range(4):
        [one] = await cluster.claimed(harness.store, session)
        await cluster.ended(harness.store, session, one)
        # An object is written at most once a second.
        writes.append(len(await harness.sync(seconds=1.1)))
    [one] = await cluster.claimed(harness.store, session)
    await cluster.ended(
        harness.store, session, one, outcome=Outcome.FAILED, reason=Reason.EXIT_CODE, exit_code=3
    )
    while await harness.store.propagate(100):
        pass
    [end] = await harness.sync(seconds=0.5)
    assert sum(writes) <= 3
    assert (end["phase"], end["jobs"]["succeeded"], end["jobs"]["failed"]) == ("Failed", 4, 1)
    assert [one["exitCode"] for one in end["firstFailures"]] == [3]


async def test_workflow_is_waiting_when_all_its_pools_are_blocked(
    harness: StatusHarness, session: Session
) -> None:
    await harness.apply(cluster.workflow("flow", {"name": "one"}, {"name": "two"}))
    assert [status["phase"] for status in await harness.sync()] == ["Queued"]
    harness.blocking["default", "default"] = StatusReason("ImagePullFailed", "no such image")
    [status] = await harness.sync()
    assert (status["phase"], status["reason"]) == ("Waiting", "ImagePullFailed")
    assert status["message"] == "no such image"
    await cluster.claimed(harness.store, session)
    [status] = await harness.sync()
    assert (status["phase"], "reason" in status) == ("Running", False)


async def test_workflow_is_queued_when_one_of_its_pools_is_not_blocked(
    harness: StatusHarness,
) -> None:
    await harness.apply(cluster.workflow("flow", {"name": "one"}, {"name": "two", "pool": "gpu"}))
    harness.blocking["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    [status] = await harness.sync()
    assert (status["phase"], "reason" in status) == ("Queued", False)
    harness.blocking["default", "gpu"] = StatusReason("PoolNotFound", "no WorkerPool gpu")
    [status] = await harness.sync()
    assert (status["phase"], status["reason"]) == ("Waiting", "PoolNotFound")


async def test_workflow_reports_suspended_when_its_pool_is_blocked_too(
    harness: StatusHarness,
) -> None:
    await harness.apply(cluster.workflow("flow", {"name": "one"}, suspend=True))
    harness.blocking["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    [status] = await harness.sync()
    assert (status["phase"], status["reason"]) == ("Waiting", "Suspended")

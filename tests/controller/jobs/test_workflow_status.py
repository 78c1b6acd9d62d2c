"""What a Workflow is told of its jobs as a harness."""

from tests.controller import cluster
from tests.controller.jobs.conftest import Scene
from workron.core.states import Reason
from workron.store.types import Outcome, Session
from workron_controller.kube.conditions import StatusReason


async def test_workflow_is_counted_at_most_every_few_seconds_and_at_its_end(
    scene: Scene, session: Session
) -> None:
    await scene.see(cluster.workflow("flow", *({"name": f"t{at}"} for at in range(5))))
    writes = [len(await scene.look())]
    for _ in range(4):
        [one] = await cluster.claimed(scene.store, session)
        await cluster.ended(scene.store, session, one)
        # Each time as much later as an object may be written again.
        writes.append(len(await scene.look(seconds=1.1)))
    [one] = await cluster.claimed(scene.store, session)
    await cluster.ended(
        scene.store, session, one, outcome=Outcome.FAILED, reason=Reason.EXIT_CODE, exit_code=3
    )
    while await scene.store.propagate(100):
        pass
    [end] = await scene.look(seconds=0.5)
    assert sum(writes) <= 3
    assert (end["phase"], end["jobs"]["succeeded"], end["jobs"]["failed"]) == ("Failed", 4, 1)
    assert [one["exitCode"] for one in end["firstFailures"]] == [3]


async def test_workflow_says_what_keeps_all_its_jobs_from_being_claimed(
    scene: Scene, session: Session
) -> None:
    await scene.see(cluster.workflow("flow", {"name": "one"}, {"name": "two"}))
    assert [said["phase"] for said in await scene.look()] == ["Queued"]
    scene.hints["default", "default"] = StatusReason("ImagePullFailed", "no such image")
    [said] = await scene.look()
    assert (said["phase"], said["reason"]) == ("Waiting", "ImagePullFailed")
    assert said["message"] == "no such image"
    await cluster.claimed(scene.store, session)
    [said] = await scene.look()
    assert (said["phase"], "reason" in said) == ("Running", False)


async def test_workflow_that_has_a_pool_without_trouble_is_queued(scene: Scene) -> None:
    await scene.see(cluster.workflow("flow", {"name": "one"}, {"name": "two", "pool": "gpu"}))
    scene.hints["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    [said] = await scene.look()
    assert (said["phase"], "reason" in said) == ("Queued", False)
    scene.hints["default", "gpu"] = StatusReason("PoolNotFound", "no WorkerPool gpu")
    [said] = await scene.look()
    assert (said["phase"], said["reason"]) == ("Waiting", "PoolNotFound")


async def test_workflow_that_is_suspended_says_that_and_nothing_of_its_pool(scene: Scene) -> None:
    await scene.see(cluster.workflow("flow", {"name": "one"}, suspend=True))
    scene.hints["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    [said] = await scene.look()
    assert (said["phase"], said["reason"]) == ("Waiting", "Suspended")

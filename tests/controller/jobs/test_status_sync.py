"""What jobs do is told in their objects: from a real store, through a real writer."""

from typing import Any

from tests.controller import cluster
from tests.controller.jobs.conftest import Scene
from workron.core.plan import Kind
from workron.store.types import Session
from workron_controller.kube.conditions import StatusReason


async def test_job_is_told_at_each_change_and_never_twice(scene: Scene, session: Session) -> None:
    await scene.see(cluster.job())
    phases = [[said["phase"] for said in await scene.look()]]
    phases.append([said["phase"] for said in await scene.look()])
    [one] = await cluster.claimed(scene.store, session)
    phases.append([said["phase"] for said in await scene.look()])
    await cluster.ended(scene.store, session, one, output=b"hello\n")
    [end] = await scene.look()
    assert phases == [["Queued"], [], ["Running"]]
    assert (end["phase"], end["exitCode"], end["outputTail"]) == ("Succeeded", 0, "hello\n")
    assert await scene.look() == []


async def test_job_that_was_quick_is_written_once(scene: Scene, session: Session) -> None:
    await scene.see(cluster.job())
    [one] = await cluster.claimed(scene.store, session)
    await cluster.ended(scene.store, session, one)
    assert [said["phase"] for said in await scene.look()] == ["Succeeded"]


async def test_what_was_otherwise_while_a_status_was_on_its_way_is_told(scene: Scene) -> None:
    await scene.see(cluster.job())
    await scene.look()
    scene.hints["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    scene.meanwhile = scene.hints.clear
    assert [said["phase"] for said in await scene.look()] == ["Waiting"]
    assert [said["phase"] for said in await scene.look()] == ["Queued"]


async def test_what_keeps_a_queued_job_from_being_claimed_is_told(scene: Scene) -> None:
    scene.hints["default", "gpu"] = StatusReason("PoolNotFound", "no WorkerPool gpu")
    await scene.see(cluster.job(pool="gpu"))
    [said] = await scene.look()
    assert (said["phase"], said["reason"]) == ("Waiting", "PoolNotFound")
    scene.hints.clear()
    assert [said["phase"] for said in await scene.look()] == ["Queued"]


async def test_status_that_somebody_else_wrote_is_written_anew(
    scene: Scene,
) -> None:
    raw = cluster.job()
    await scene.see(raw)
    [told] = await scene.look()
    scene.handler.objects.mark_all_unsynced()
    scene.handler.handle_update(Kind.JOB, cluster.told(raw, **{**told, "exitCode": 77}))
    [again] = await scene.look()
    assert "exitCode" not in again


async def test_object_leaves_after_its_time_and_not_before(scene: Scene, session: Session) -> None:
    kept, timed = (
        await scene.see(cluster.job("kept")),
        await scene.see(cluster.job("timed", ttlSecondsAfterFinished=60)),
    )
    for one in await cluster.claimed(scene.store, session, 2):
        await cluster.ended(scene.store, session, one)
    await scene.look()
    scene.clock.turn(50)
    await scene.ttl.run_once()
    assert scene.deleted == []
    scene.clock.turn(15)
    await scene.ttl.run_once()
    assert scene.deleted == ["timed"]
    assert [seen.latest.name for seen in scene.handler.objects] == ["kept"]
    assert (kept.is_finished, timed.is_finished) == (True, True)


async def test_time_that_nobody_can_count_to_deletes_nothing(scene: Scene) -> None:
    raw = cluster.job(ttlSecondsAfterFinished=1 << 60)
    moments: list[Any] = ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "soon", 7, []]
    for finished in moments:
        scene.handler.handle_update(
            Kind.JOB, cluster.told(raw, phase="Failed", finishedAt=finished)
        )
        await scene.ttl.run_once()
    assert scene.deleted == []


async def test_what_is_over_before_it_was_written_is_not_written(scene: Scene) -> None:
    await scene.see(cluster.job())
    await scene.look()
    scene.hints["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    await scene.status_sync.run_once()
    assert len(scene.status_queue) == 1
    scene.hints.clear()
    assert await scene.look() == []

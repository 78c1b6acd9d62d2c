"""What becomes of statuses that are not taken, and how long others wait for them."""

import asyncio
import itertools

import pytest
from structlog.testing import capture_logs

from tests.controller import cluster
from tests.controller.jobs.conftest import Scene
from workron.core.states import Reason
from workron.store.types import Outcome, Session
from workron_controller.jobs.status_writer import PendingStatus
from workron_controller.kube import errors
from workron_controller.kube.conditions import StatusReason


async def test_what_the_server_did_not_take_is_told_when_it_does(
    scene: Scene, session: Session
) -> None:
    await scene.see(cluster.job())
    scene.trouble = errors.UnreachableError("connection refused")
    assert await scene.look() == []
    [one] = await cluster.claimed(scene.store, session)
    await cluster.ended(scene.store, session, one)
    scene.trouble = None
    assert [said["phase"] for said in await scene.look()] == ["Succeeded"]


async def test_refusal_is_told_once(scene: Scene) -> None:
    await scene.see(cluster.job(argv=["x"]))
    [said] = await scene.look()
    assert said["reason"] == "InvalidSpec"
    assert await scene.look() == []


async def test_refusal_is_a_notice_with_the_status_that_begins_to_tell_it(scene: Scene) -> None:
    await scene.see(cluster.job(argv=["x"]))
    scene.trouble = errors.UnreachableError("connection refused")
    await scene.look()
    assert scene.notices == []
    scene.trouble = None
    await scene.look()
    await scene.look()
    assert [notice.cause.reason for notice in scene.notices] == ["InvalidSpec"]


async def test_refusal_that_another_leader_has_told_is_no_notice(scene: Scene) -> None:
    raw = cluster.job(argv=["x"])
    await scene.see(raw)
    [said] = await scene.look()
    scene.notices.clear()
    # Whoever leads now knows what was listed, and wrote nothing himself.
    scene.handler.objects.remove(cluster.uid_of(raw))
    await scene.see(cluster.told(raw, **{**said, "message": "in the words of another version"}))
    assert len(await scene.look()) == 1
    assert scene.notices == []


async def test_jobs_that_wait_for_their_namespace_are_one_occasion(
    scene: Scene, session: Session
) -> None:
    scene.hints["default", "default"] = StatusReason(
        "NamespaceNotEnabled", "kubectl create rolebinding"
    )
    for name in ("one", "two"):
        await scene.see(cluster.job(name))
    await scene.look()
    first, second = scene.notices
    assert (first.cause.message, first.name) == ("kubectl create rolebinding", second.name)
    scene.hints.clear()
    for one in await cluster.claimed(scene.store, session, 2):
        await cluster.ended(
            scene.store, session, one, outcome=Outcome.FAILED, reason=Reason.EXIT_CODE, exit_code=3
        )
    assert [said["phase"] for said in await scene.look()] == ["Failed", "Failed"]
    assert len(scene.notices) == 2


async def test_what_may_not_be_written_is_tried_more_and_more_seldom(scene: Scene) -> None:
    await scene.see(cluster.job())
    scene.trouble = errors.ForbiddenError("403")
    tries: list[float] = []
    with capture_logs() as logs:
        for _ in range(4 * 1_300):
            before = scene.tries
            await scene.look(seconds=0.25)
            tries += [scene.clock.monotonic()] * (scene.tries - before)
    assert [later - one for one, later in itertools.pairwise(tries)] == [
        1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300,
    ]  # fmt: skip
    assert [one["event"] for one in logs] == ["status not written"] * len(tries)
    scene.hints["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    await scene.look(1)
    scene.clock.turn(1)
    assert (scene.status_queue.deferred, scene.writer.lag) == (1, 0)
    scene.trouble = None
    assert [said["phase"] for said in await scene.look(300)] == ["Waiting"]
    scene.hints.clear()
    scene.trouble = errors.ForbiddenError("403")
    await scene.look(2)
    scene.trouble = None
    assert len(await scene.look(1)) == 1


async def test_what_may_not_be_written_keeps_no_other_and_no_end_from_being_written(
    scene: Scene, session: Session
) -> None:
    await scene.see(cluster.job("closed"))
    scene.trouble = errors.ForbiddenError("403")
    for _ in range(6):
        await scene.look(64)
    [one] = await cluster.claimed(scene.store, session)
    scene.trouble = None
    await scene.see(cluster.job("open"))
    assert [said["phase"] for said in await scene.look(1)] == ["Queued"]
    await cluster.ended(scene.store, session, one)
    assert [said["phase"] for said in await scene.look(1)] == ["Succeeded"]


@pytest.mark.parametrize("trouble", [errors.UnauthorizedError, errors.AccessError])
async def test_who_is_not_known_leaves_no_object_for_long(
    scene: Scene, trouble: type[errors.ApiError]
) -> None:
    await scene.see(cluster.job())
    scene.trouble = trouble("the token is wrong")
    for _ in range(10):
        await scene.look(100)
    scene.trouble = None
    assert [said["phase"] for said in await scene.look(2)] == ["Queued"]


async def test_lag_is_that_of_the_status_that_waits_longest(scene: Scene) -> None:
    await scene.see(cluster.job())
    assert scene.writer.lag == 0
    scene.trouble = errors.UnreachableError("connection refused")
    await scene.look()
    scene.clock.turn(20)
    await scene.see(cluster.job("later"))
    await scene.status_sync.run_once()
    scene.hints["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    await scene.status_sync.run_once()
    scene.clock.turn(5)
    assert scene.writer.lag == 25
    scene.trouble = None
    await scene.look(0)
    assert scene.writer.lag == 0


async def test_lag_of_who_leads_anew_is_counted_anew(scene: Scene) -> None:
    await scene.see(cluster.job())
    await scene.status_sync.run_once()
    scene.clock.turn(20)
    scene.status_queue.clear()
    work = asyncio.create_task(scene.writer.run())
    await asyncio.sleep(0)
    assert scene.writer.lag == 0
    work.cancel()


async def test_writer_goes_on_by_itself_and_ends_when_it_is_told(
    scene: Scene,
) -> None:
    seen = await scene.see(cluster.job())
    work = asyncio.create_task(scene.writer.run())
    for number in itertools.count():
        scene.writer.enqueue(
            PendingStatus(seen.uid, {"phase": "Queued", "n": number}, is_final=True)
        )
        await asyncio.sleep(0)
        if len(scene.written) >= 3:
            break
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_writer_that_was_ended_often_writes_as_before(scene: Scene) -> None:
    for _ in range(20):
        work = asyncio.create_task(scene.writer.run())
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    seen = await scene.see(cluster.job())
    work = asyncio.create_task(scene.writer.run())
    scene.writer.enqueue(PendingStatus(seen.uid, {"phase": "Queued"}, is_final=True))
    async with asyncio.timeout(5):
        while not scene.written:
            await asyncio.sleep(0)
    work.cancel()

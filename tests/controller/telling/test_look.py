"""What jobs do is told in their objects: from a real store, through a real writer."""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.controller import cluster
from tests.controller.cluster import Raw
from tests.controller.hand_time import HandTime
from workron.core.plan import Kind
from workron.core.states import Reason
from workron.store.protocol import Outcome, Session, Store
from workron_controller.api import errors
from workron_controller.intake.carrier import Carrier
from workron_controller.intake.hearing import Ear
from workron_controller.objects import Seen, Why
from workron_controller.telling.farewell import Farewell
from workron_controller.telling.look import Look
from workron_controller.telling.notices import Notice
from workron_controller.telling.outbox import Letter, Outbox
from workron_controller.telling.writer import Writer


class Scene:
    """Objects, a store, and an API server that notes what is written, or does not take it."""

    def __init__(self, store: Store, ear: Ear, time: HandTime) -> None:
        self.store = store
        self.ear = ear
        self.clock = time
        self.written: list[Mapping[str, Any]] = []
        self.trouble: errors.ApiError | None = None
        self.hints: dict[tuple[str, str], Why] = {}
        self.outbox = Outbox(rate=1000, burst=1000)
        self.notices: list[Notice] = []
        leave = self.notices.append
        self.writer = Writer(self._write, self.outbox, ear.objects, time, leave)
        hint = lambda *place: self.hints.get(place)  # noqa: E731 - it is one
        self.looking = Look(store, ear.objects, self.writer.put, hint, time)
        self.tries = 0
        self.meanwhile: Callable[[], object] = lambda: None
        self.deleted: list[str] = []
        self.farewell = Farewell(store, self._delete, ear.objects, time)

    async def _write(self, seen: Seen, said: Mapping[str, Any]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.meanwhile()
        await self.looking.look()
        self.written.append(said)
        # A watch may be quicker than the answer.
        seen.status = said

    async def _delete(self, seen: Seen) -> None:
        self.deleted.append(seen.name)

    async def see(self, raw: Raw) -> Seen:
        self.ear.hear(Kind(raw["kind"]), raw)
        carrier = Carrier(self.store, self.ear.inbox, self.ear.objects)
        await carrier.carry(await self.ear.inbox.take(10, 1 << 20))
        seen = self.ear.objects.get(cluster.uid_of(raw))
        assert seen is not None
        return seen

    async def look(self, seconds: float = 2) -> list[Mapping[str, Any]]:
        """Look, send what is to be sent, and give what was written."""
        self.clock.turn(seconds)
        self.written = []
        await self.looking.look()
        while isinstance(letter := self.outbox.take(self.clock.monotonic()), Letter):
            self.tries += 1
            await self.writer.deliver(letter)
            if self.trouble is not None:
                break
        return self.written


@pytest.fixture
def scene(store: Store, ear: Ear, time: HandTime) -> Scene:
    return Scene(store, ear, time)


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
    assert [notice.why.reason for notice in scene.notices] == ["InvalidSpec"]


async def test_refusal_that_another_leader_has_told_is_no_notice(scene: Scene) -> None:
    raw = cluster.job(argv=["x"])
    await scene.see(raw)
    [said] = await scene.look()
    scene.notices.clear()
    # Whoever leads now knows what was listed, and wrote nothing himself.
    scene.ear.objects.forget(cluster.uid_of(raw))
    await scene.see(cluster.told(raw, **{**said, "message": "in the words of another version"}))
    assert len(await scene.look()) == 1
    assert scene.notices == []


async def test_jobs_that_wait_for_their_namespace_are_one_occasion(
    scene: Scene, session: Session
) -> None:
    scene.hints["default", "default"] = Why("NamespaceNotEnabled", "kubectl create rolebinding")
    for name in ("one", "two"):
        await scene.see(cluster.job(name))
    await scene.look()
    first, second = scene.notices
    assert (first.why.message, first.name) == ("kubectl create rolebinding", second.name)
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
    assert [one["event"] for one in logs] == ["status is not written"] * len(tries)
    scene.hints["default", "default"] = Why("PoolNotFound", "no WorkerPool default")
    await scene.look(1)
    scene.clock.turn(1)
    assert (scene.outbox.held, scene.writer.lag) == (1, 0)
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
    await scene.looking.look()
    scene.hints["default", "default"] = Why("PoolNotFound", "no WorkerPool default")
    await scene.looking.look()
    scene.clock.turn(5)
    assert scene.writer.lag == 25
    scene.trouble = None
    await scene.look(0)
    assert scene.writer.lag == 0


async def test_lag_of_who_leads_anew_is_counted_anew(scene: Scene) -> None:
    await scene.see(cluster.job())
    await scene.looking.look()
    scene.clock.turn(20)
    scene.outbox.clear()
    work = asyncio.create_task(scene.writer.run())
    await asyncio.sleep(0)
    assert scene.writer.lag == 0
    work.cancel()


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
    while await scene.store.settle(100):
        pass
    [end] = await scene.look(seconds=0.5)
    assert sum(writes) <= 3
    assert (end["phase"], end["jobs"]["succeeded"], end["jobs"]["failed"]) == ("Failed", 4, 1)
    assert [one["exitCode"] for one in end["firstFailures"]] == [3]


async def test_what_was_otherwise_while_a_status_was_on_its_way_is_told(scene: Scene) -> None:
    await scene.see(cluster.job())
    await scene.look()
    scene.hints["default", "default"] = Why("PoolNotFound", "no WorkerPool default")
    scene.meanwhile = scene.hints.clear
    assert [said["phase"] for said in await scene.look()] == ["Waiting"]
    assert [said["phase"] for said in await scene.look()] == ["Queued"]


async def test_what_keeps_a_queued_job_from_being_claimed_is_told(scene: Scene) -> None:
    scene.hints["default", "gpu"] = Why("PoolNotFound", "no WorkerPool gpu")
    await scene.see(cluster.job(pool="gpu"))
    [said] = await scene.look()
    assert (said["phase"], said["reason"]) == ("Waiting", "PoolNotFound")
    scene.hints.clear()
    assert [said["phase"] for said in await scene.look()] == ["Queued"]


async def test_workflow_says_what_keeps_all_its_jobs_from_being_claimed(
    scene: Scene, session: Session
) -> None:
    await scene.see(cluster.workflow("flow", {"name": "one"}, {"name": "two"}))
    assert [said["phase"] for said in await scene.look()] == ["Queued"]
    scene.hints["default", "default"] = Why("ImagePullFailed", "no such image")
    [said] = await scene.look()
    assert (said["phase"], said["reason"]) == ("Waiting", "ImagePullFailed")
    assert said["message"] == "no such image"
    await cluster.claimed(scene.store, session)
    [said] = await scene.look()
    assert (said["phase"], "reason" in said) == ("Running", False)


async def test_workflow_that_has_a_pool_without_trouble_is_queued(scene: Scene) -> None:
    await scene.see(cluster.workflow("flow", {"name": "one"}, {"name": "two", "pool": "gpu"}))
    scene.hints["default", "gpu"] = Why("PoolNotFound", "no WorkerPool gpu")
    [said] = await scene.look()
    assert (said["phase"], "reason" in said) == ("Queued", False)
    scene.hints["default", "default"] = Why("PoolNotFound", "no WorkerPool default")
    [said] = await scene.look()
    assert (said["phase"], said["reason"]) == ("Waiting", "PoolNotFound")


async def test_workflow_that_is_suspended_says_that_and_nothing_of_its_pool(scene: Scene) -> None:
    await scene.see(cluster.workflow("flow", {"name": "one"}, suspend=True))
    scene.hints["default", "default"] = Why("PoolNotFound", "no WorkerPool default")
    [said] = await scene.look()
    assert (said["phase"], said["reason"]) == ("Waiting", "Suspended")


async def test_status_that_somebody_else_wrote_is_written_anew(
    scene: Scene,
) -> None:
    raw = cluster.job()
    await scene.see(raw)
    [told] = await scene.look()
    scene.ear.objects.doubt()
    scene.ear.hear(Kind.JOB, cluster.told(raw, **{**told, "exitCode": 77}))
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
    await scene.farewell.part()
    assert scene.deleted == []
    scene.clock.turn(15)
    await scene.farewell.part()
    assert scene.deleted == ["timed"]
    assert [seen.name for seen in scene.ear.objects] == ["kept"]
    assert (kept.is_told_over, timed.is_told_over) == (True, True)


async def test_time_that_nobody_can_count_to_deletes_nothing(scene: Scene) -> None:
    raw = cluster.job(ttlSecondsAfterFinished=1 << 60)
    moments: list[Any] = ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "soon", 7, []]
    for finished in moments:
        scene.ear.hear(Kind.JOB, cluster.told(raw, phase="Failed", finishedAt=finished))
        await scene.farewell.part()
    assert scene.deleted == []


async def test_writer_goes_on_by_itself_and_ends_when_it_is_told(
    scene: Scene,
) -> None:
    seen = await scene.see(cluster.job())
    work = asyncio.create_task(scene.writer.run())
    for number in itertools.count():
        scene.writer.put(Letter(seen.uid, {"phase": "Queued", "n": number}, is_end=True))
        await asyncio.sleep(0)
        if len(scene.written) >= 3:
            break
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_what_is_over_before_it_was_written_is_not_written(scene: Scene) -> None:
    await scene.see(cluster.job())
    await scene.look()
    scene.hints["default", "default"] = Why("PoolNotFound", "no WorkerPool default")
    await scene.looking.look()
    assert len(scene.outbox) == 1
    scene.hints.clear()
    assert await scene.look() == []


async def test_writer_that_was_ended_often_writes_as_before(scene: Scene) -> None:
    for _ in range(20):
        work = asyncio.create_task(scene.writer.run())
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    seen = await scene.see(cluster.job())
    work = asyncio.create_task(scene.writer.run())
    scene.writer.put(Letter(seen.uid, {"phase": "Queued"}, is_end=True))
    async with asyncio.timeout(5):
        while not scene.written:
            await asyncio.sleep(0)
    work.cancel()

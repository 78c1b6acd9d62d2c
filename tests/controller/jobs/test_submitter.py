"""What is seen in the cluster is in the store, whatever else was seen with it."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.controller import cluster
from tests.controller.cluster import Raw
from tests.controller.manual_clock import ManualClock
from workron.core import errors
from workron.core.ids import JobId
from workron.core.plan import Kind, Plan
from workron.core.states import State
from workron.store import connect
from workron.store.api import Store
from workron.store.types import RunUpdate, Session
from workron_controller.jobs.cache import CachedObject, ObjectCache
from workron_controller.jobs.object_handler import ObjectHandler
from workron_controller.jobs.submitter import Submitter
from workron_controller.jobs.workqueue import Workqueue


class Scene:
    """Objects come and go, and are carried into a real store."""

    def __init__(self, store: Store, handler: ObjectHandler) -> None:
        self.store = store
        self.handler = handler
        self.submitter = Submitter(store, handler.workqueue, handler.objects)

    async def see(self, *raws: Raw) -> Sequence[CachedObject]:
        for raw in raws:
            self.handler.handle_update(Kind(raw["kind"]), raw)
        await self.carry()
        found = [self.handler.objects.get(cluster.uid_of(raw)) for raw in raws]
        return [one for one in found if one is not None]

    async def lose(self, raw: Raw) -> None:
        self.handler.handle_delete(Kind(raw["kind"]), raw)
        await self.carry()

    async def carry(self) -> None:
        while len(self.handler.workqueue):
            await self.submitter.process(await self.handler.workqueue.take(100, 1 << 20))

    async def state(self, seen: CachedObject) -> str:
        assert seen.run is not None
        [row] = await self.store.get_jobs([seen.run])
        return str(row.state)


@pytest.fixture
def scene(store: Store, handler: ObjectHandler) -> Scene:
    return Scene(store, handler)


async def test_object_becomes_a_job_of_its_uid(scene: Scene) -> None:
    raw = cluster.job(priority=3)
    [seen] = await scene.see(raw)
    [owned] = (await scene.store.find_by_uid([seen.uid])).values()
    assert (owned.run, owned.generation, seen.submitted_generation) == (seen.run, 1, 1)
    assert await scene.state(seen) == State.QUEUED


async def test_echo_of_our_own_status_is_not_carried(scene: Scene, workqueue: Workqueue) -> None:
    raw = cluster.job()
    await scene.see(raw)
    scene.handler.handle_update(Kind.JOB, cluster.told(raw, phase="Running"))
    assert len(workqueue) == 0


async def test_object_that_is_gone_is_cancelled(scene: Scene) -> None:
    raw = cluster.job()
    [seen] = await scene.see(raw)
    await scene.lose(raw)
    assert await scene.state(seen) == State.CANCELLED
    assert len(scene.handler.objects) == 0


async def test_object_that_others_still_hold_up_is_cancelled_when_it_is_deleted(
    scene: Scene,
) -> None:
    raw = cluster.job()
    [seen] = await scene.see(raw)
    await scene.see(raw | {"metadata": raw["metadata"] | {"deletionTimestamp": "2026-01-01"}})
    assert await scene.state(seen) == State.CANCELLED


async def test_object_of_the_same_name_is_another_job(scene: Scene) -> None:
    [first] = await scene.see(cluster.job("same"))
    [second] = await scene.see(cluster.job("same", command="other"))
    assert first.run != second.run
    assert await scene.state(first) == await scene.state(second) == State.QUEUED


async def test_edition_that_suspends_resumes_and_cancels_takes_effect(scene: Scene) -> None:
    raw = cluster.job()
    [seen] = await scene.see(raw)
    await scene.see(raw := cluster.edited(raw, suspend=True))
    assert await scene.state(seen) == State.WAITING
    await scene.see(raw := cluster.edited(raw, suspend=False))
    assert await scene.state(seen) == State.QUEUED
    await scene.see(cluster.edited(raw, cancel=True))
    assert await scene.state(seen) == State.CANCELLED


async def test_edition_that_has_come_late_changes_nothing(scene: Scene) -> None:
    raw = cluster.job()
    newer = cluster.edited(cluster.edited(raw, suspend=True), suspend=False)
    [seen] = await scene.see(newer)
    scene.handler.objects.remove(seen.uid)
    [again] = await scene.see(cluster.edited(raw, suspend=True))
    assert await scene.state(again) == State.QUEUED


async def test_object_that_is_cancelled_from_the_first_never_runs(
    scene: Scene, session: Session
) -> None:
    [seen] = await scene.see(cluster.job(cancel=True))
    assert not await cluster.claimed(scene.store, session)
    assert await scene.state(seen) == State.CANCELLED


async def test_what_had_ended_when_it_was_first_seen_is_not_run_again(scene: Scene) -> None:
    [seen] = await scene.see(cluster.told(cluster.job(), phase="Succeeded"))
    assert seen.run is None
    assert not await scene.store.list_runs()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (cluster.job("bad", argv=["x"]), "InvalidSpec"),
        (cluster.job("bad", nonsense=1), "InvalidSpec"),
        (cluster.job("bad", dependsOn=[{"name": "bad"}]), "InvalidGraph"),
        (cluster.workflow("bad", {"name": "a", "dependsOn": [{"name": "b"}]}), "InvalidGraph"),
        (cluster.job("bad") | {"spec": "no mapping"}, "InvalidSpec"),
        (cluster.job("bad") | {"spec": None}, "InvalidSpec"),
    ],
    ids=["two commands", "unknown", "itself", "no such task", "text", "none"],
)
async def test_bad_object_is_refused_and_others_beside_it_are_not(
    scene: Scene, bad: Raw, reason: str
) -> None:
    first, refused, last = await scene.see(cluster.job("a"), bad, cluster.job("b"))
    assert first.run is not None
    assert last.run is not None
    assert refused.run is None
    assert refused.rejection is not None
    assert refused.rejection.reason == reason
    assert refused.rejection.message


async def test_cycle_over_objects_is_refused_where_it_closes(scene: Scene) -> None:
    one = cluster.job("one", dependsOn=[{"name": "two"}])
    two = cluster.job("two", dependsOn=[{"name": "one"}])
    first, second, other = await scene.see(one, two, cluster.job("other"))
    refused = [seen for seen in (first, second) if seen.rejection is not None]
    assert other.run is not None
    assert {seen.rejection.reason for seen in refused if seen.rejection} == {"CycleDetected"}
    assert len(refused) >= 1


async def test_refused_object_is_not_judged_again_in_the_same_edition(scene: Scene) -> None:
    raw = cluster.job("bad", argv=["x"])
    await scene.see(raw)
    scene.handler.handle_update(Kind.JOB, raw)
    assert len(scene.handler.workqueue) == 0


async def test_replica_that_begins_anew_finds_what_there_is(scene: Scene, store: Store) -> None:
    raw = cluster.job()
    [before] = await scene.see(raw)
    other = Scene(store, ObjectHandler(ObjectCache(), Workqueue(ManualClock())))
    [after] = await other.see(raw)
    assert after.run == before.run
    assert len(await store.list_runs()) == 1


async def test_nothing_is_lost_while_the_store_is_away(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Sequence[Plan]] = []

    async def away(plans: Sequence[Plan], **_: Any) -> Any:
        calls.append(plans)
        raise errors.StoreUnreachableError("gone fishing")

    usual = scene.store.submit
    monkeypatch.setattr(scene.store, "submit", away)
    with pytest.raises(errors.StoreUnreachableError):
        await scene.see(cluster.job("a"), cluster.job("b"))
    monkeypatch.setattr(scene.store, "submit", usual)
    assert len(calls) == 1


async def _counted(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the plans of each call of the store."""
    calls: list[int] = []
    usual = scene.store.submit

    async def counted(plans: Sequence[Plan], **how: Any) -> Any:
        calls.append(len(plans))
        if any(plan.identity.name.startswith("strange") for plan in plans):
            raise ValueError("nobody has seen such a thing")
        return await usual(plans, **how)

    monkeypatch.setattr(scene.store, "submit", counted)
    return calls


async def test_many_cycles_cost_a_call_for_each_that_is_in_one_and_not_for_the_others(
    fresh_database: str, handler: ObjectHandler, time: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await connect.connect(fresh_database, clock=time, rng=random.Random(1))
    scene = Scene(store, handler)
    calls = await _counted(scene, monkeypatch)
    pairs = [(f"one-{at}", f"two-{at}") for at in range(5)]
    bad = [
        cluster.job(name, dependsOn=[{"name": other}])
        for pair in pairs
        for name, other in (pair, pair[::-1])
    ]
    good = [cluster.job(f"good-{at}") for at in range(90)]
    raws = [raw for at, one in enumerate(bad) for raw in (one, *good[9 * at : 9 * at + 9])]
    seen = await scene.see(*raws)
    assert calls == [100, 90, *(10 * [1])]
    assert all(one.run is not None for one in seen if one.latest.name.startswith("good"))
    assert sum(one.rejection is not None for one in seen) == len(pairs)
    await store.close()


async def test_what_nobody_expected_of_one_keeps_no_other_out(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _counted(scene, monkeypatch)
    first, strange, last = await scene.see(
        cluster.job("a"), cluster.job("strange"), cluster.job("b")
    )
    assert first.run is not None
    assert last.run is not None
    assert strange.rejection is not None
    assert strange.rejection.message == "cannot store the object: nobody has seen such a thing"


@pytest.mark.parametrize("trouble", [errors.StoreDataError("no"), ValueError("no")])
async def test_edition_that_cannot_be_carried_keeps_no_other_from_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    one, other = cluster.job("one"), cluster.job("other")
    [strange, fine] = await scene.see(one, other)
    usual = scene.store.update_run

    async def edit(run: JobId, wish: RunUpdate) -> bool:
        if run == strange.run:
            raise trouble
        return await usual(run, wish)

    monkeypatch.setattr(scene.store, "update_run", edit)
    await scene.see(cluster.edited(one, suspend=True), cluster.edited(other, suspend=True))
    assert await scene.state(strange) == State.QUEUED
    assert await scene.state(fine) == State.WAITING


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"env": [{"name": "A", "value": "\ud800"}]}, "has half of a surrogate pair"),
        ({"priority": 1 << 80}, "spec.priority: must be"),
        ({"maxAttempts": float("nan")}, "spec.maxAttempts: must be"),
    ],
    ids=["half", "huge", "nan"],
)
async def test_what_no_other_json_bears_is_judged_as_well(
    scene: Scene, spec: Raw, words: str
) -> None:
    [seen] = await scene.see(cluster.job(**spec))
    assert seen.rejection is not None
    assert words in seen.rejection.message


async def test_what_the_cluster_says_of_an_object_is_not_carried(scene: Scene) -> None:
    raw = cluster.told(cluster.job(), phase="Waiting", message="at length")
    raw["metadata"]["managedFields"] = [{"manager": "somebody"}]
    scene.handler.handle_update(Kind.JOB, raw)
    [news] = await scene.handler.workqueue.take(10, 1000)
    assert news.decode().keys() == raw.keys() - {"status"}
    assert news.decode()["metadata"].keys() == raw["metadata"].keys() - {"managedFields"}


async def test_large_workflows_are_carried_one_by_one_behind_what_came_meanwhile(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.submitter = Submitter(
        scene.store, scene.handler.workqueue, scene.handler.objects, max_rows=10
    )
    calls: list[list[str]] = []
    usual = scene.store.submit

    async def submit(plans: Sequence[Plan], **how: Any) -> Any:
        calls.append([plan.identity.name for plan in plans])
        if calls[-1] == ["large-0"]:
            scene.handler.handle_update(Kind.JOB, cluster.job("late"))
        return await usual(plans, **how)

    monkeypatch.setattr(scene.store, "submit", submit)
    large = [cluster.workflow(f"large-{at}", {"name": "a", "count": 20}) for at in range(3)]
    await scene.see(cluster.job("first"), *large)
    assert calls == [["first"], ["large-0"], ["late"], ["large-1"], ["large-2"]]

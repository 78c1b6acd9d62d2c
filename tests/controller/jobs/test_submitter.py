"""Objects are submitted, updated and cancelled, whatever other objects are in the batch."""

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
from workron.store.types import RunUpdate, Session, Signal
from workron_controller.jobs.cache import CachedObject, ObjectCache
from workron_controller.jobs.object_handler import ObjectHandler
from workron_controller.jobs.submitter import Submitter
from workron_controller.jobs.workqueue import Workqueue


class SubmitterHarness:
    """Applies and deletes objects, and brings them into a store."""

    def __init__(self, store: Store, handler: ObjectHandler) -> None:
        self.store = store
        self.handler = handler
        self.terminating: set[str] = set()
        self.submitter = Submitter(store, handler.workqueue, handler.objects, self._is_terminating)

    async def _is_terminating(self, namespace: str) -> bool:
        return namespace in self.terminating

    async def apply(self, *raws: Raw) -> Sequence[CachedObject]:
        for raw in raws:
            self.handler.handle(Kind(raw["kind"]), raw)
        await self.submit_all()
        found = [self.handler.objects.get(cluster.uid_of(raw)) for raw in raws]
        return [one for one in found if one is not None]

    async def delete(self, raw: Raw) -> None:
        self.handler.handle(Kind(raw["kind"]), raw, is_deleted=True)
        await self.submit_all()

    async def submit_all(self) -> None:
        while len(self.handler.workqueue):
            await self.submitter.process(await self.handler.workqueue.take(100, 1 << 20))

    async def state(self, cached: CachedObject) -> str:
        assert cached.run is not None
        [row] = await self.store.get_jobs([cached.run])
        return str(row.state)


@pytest.fixture
def harness(store: Store, handler: ObjectHandler) -> SubmitterHarness:
    return SubmitterHarness(store, handler)


async def test_object_is_submitted_as_a_run_with_its_uid(harness: SubmitterHarness) -> None:
    raw = cluster.job(priority=3)
    [cached] = await harness.apply(raw)
    [owned] = (await harness.store.find_by_uid([cached.uid])).values()
    assert (owned.run, owned.generation, cached.submitted_generation) == (cached.run, 1, 1)
    assert await harness.state(cached) == State.QUEUED


async def test_object_is_not_queued_when_only_its_status_changed(
    harness: SubmitterHarness, workqueue: Workqueue
) -> None:
    raw = cluster.job()
    await harness.apply(raw)
    harness.handler.handle(Kind.JOB, cluster.with_status(raw, phase="Running"))
    assert len(workqueue) == 0


async def test_run_is_cancelled_when_its_object_is_deleted(harness: SubmitterHarness) -> None:
    raw = cluster.job()
    [cached] = await harness.apply(raw)
    await harness.delete(raw)
    assert await harness.state(cached) == State.CANCELLED
    assert len(harness.handler.objects) == 0


@pytest.mark.parametrize("is_terminating", [False, True])
async def test_finally_runs_when_an_object_is_deleted_unless_its_namespace_is(
    harness: SubmitterHarness, session: Session, *, is_terminating: bool
) -> None:
    task = {"name": "a", "command": "true"}
    raw = cluster.workflow("flow", task, **{"finally": [task | {"name": "z"}]})
    if is_terminating:
        harness.terminating.add(raw["metadata"]["namespace"])
    await harness.apply(raw)
    await harness.delete(raw)
    while await harness.store.propagate(100):
        pass
    claimed = await cluster.claimed(harness.store, session)
    assert [one.name for one in claimed] == ([] if is_terminating else ["z"])


async def test_finally_is_cancelled_when_its_object_says_so(
    harness: SubmitterHarness, session: Session
) -> None:
    task = {"name": "a", "command": "true"}
    raw = cluster.workflow("flow", task, **{"finally": [task | {"name": "z"}]})
    [cached] = await harness.apply(raw)
    await harness.apply(raw := cluster.edited(raw, cancel=True))
    while await harness.store.propagate(100):
        pass
    assert [one.name for one in await cluster.claimed(harness.store, session)] == ["z"]
    await harness.apply(cluster.edited(raw, forceCancel=True))
    assert cached.run is not None
    [signal] = (await harness.store.list_signals(cached.run)).values()
    assert signal is Signal.CANCEL


async def test_run_is_cancelled_when_a_finalizer_keeps_its_deleted_object(
    harness: SubmitterHarness,
) -> None:
    raw = cluster.job()
    [cached] = await harness.apply(raw)
    await harness.apply(raw | {"metadata": raw["metadata"] | {"deletionTimestamp": "2026-01-01"}})
    assert await harness.state(cached) == State.CANCELLED


async def test_object_is_another_run_when_only_the_name_is_the_same(
    harness: SubmitterHarness,
) -> None:
    [first] = await harness.apply(cluster.job("same"))
    [second] = await harness.apply(cluster.job("same", command="other"))
    assert first.run != second.run
    assert await harness.state(first) == await harness.state(second) == State.QUEUED


async def test_run_is_suspended_resumed_and_cancelled_when_its_object_is_edited(
    harness: SubmitterHarness,
) -> None:
    raw = cluster.job()
    [cached] = await harness.apply(raw)
    await harness.apply(raw := cluster.edited(raw, suspend=True))
    assert await harness.state(cached) == State.WAITING
    await harness.apply(raw := cluster.edited(raw, suspend=False))
    assert await harness.state(cached) == State.QUEUED
    await harness.apply(cluster.edited(raw, cancel=True))
    assert await harness.state(cached) == State.CANCELLED


async def test_older_generation_changes_nothing_when_it_arrives_late(
    harness: SubmitterHarness,
) -> None:
    raw = cluster.job()
    newer = cluster.edited(cluster.edited(raw, suspend=True), suspend=False)
    [cached] = await harness.apply(newer)
    harness.handler.objects.remove(cached.uid)
    [again] = await harness.apply(cluster.edited(raw, suspend=True))
    assert await harness.state(again) == State.QUEUED


async def test_job_never_runs_when_it_is_created_with_cancel(
    harness: SubmitterHarness, session: Session
) -> None:
    [cached] = await harness.apply(cluster.job(cancel=True))
    assert not await cluster.claimed(harness.store, session)
    assert await harness.state(cached) == State.CANCELLED


async def test_object_is_not_submitted_when_its_status_is_final(harness: SubmitterHarness) -> None:
    [cached] = await harness.apply(cluster.with_status(cluster.job(), phase="Succeeded"))
    assert cached.run is None
    assert not await harness.store.list_runs()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (cluster.job("bad", argv=["x"]), "InvalidSpec"),
        (cluster.job("bad", nonsense=1), "InvalidSpec"),
        (cluster.job("bad", workdir="data"), "InvalidSpec"),
        (cluster.job("bad", dependsOn=[{"name": "bad"}]), "InvalidGraph"),
        (cluster.workflow("bad", {"name": "a", "dependsOn": [{"name": "b"}]}), "InvalidGraph"),
        (cluster.job("bad") | {"spec": "no mapping"}, "InvalidSpec"),
        (cluster.job("bad") | {"spec": None}, "InvalidSpec"),
    ],
    ids=["two commands", "unknown", "workdir", "itself", "no such task", "text", "none"],
)
async def test_invalid_object_is_rejected_and_others_in_the_batch_are_not(
    harness: SubmitterHarness, bad: Raw, reason: str
) -> None:
    first, rejected, last = await harness.apply(cluster.job("a"), bad, cluster.job("b"))
    assert first.run is not None
    assert last.run is not None
    assert rejected.run is None
    assert rejected.rejection is not None
    assert rejected.rejection.reason == reason
    assert rejected.rejection.message


async def test_object_that_closes_a_cycle_is_rejected(harness: SubmitterHarness) -> None:
    one = cluster.job("one", dependsOn=[{"name": "two"}])
    two = cluster.job("two", dependsOn=[{"name": "one"}])
    first, second, other = await harness.apply(one, two, cluster.job("other"))
    rejected = [cached for cached in (first, second) if cached.rejection is not None]
    assert other.run is not None
    assert {cached.rejection.reason for cached in rejected if cached.rejection} == {"CycleDetected"}
    assert len(rejected) >= 1


async def test_rejected_object_is_not_queued_again_in_the_same_generation(
    harness: SubmitterHarness,
) -> None:
    raw = cluster.job("bad", argv=["x"])
    await harness.apply(raw)
    harness.handler.handle(Kind.JOB, raw)
    assert len(harness.handler.workqueue) == 0


async def test_replica_finds_the_run_when_it_restarts(
    harness: SubmitterHarness, store: Store
) -> None:
    raw = cluster.job()
    [before] = await harness.apply(raw)
    other = SubmitterHarness(store, ObjectHandler(ObjectCache(), Workqueue(ManualClock())))
    [after] = await other.apply(raw)
    assert after.run == before.run
    assert len(await store.list_runs()) == 1


async def test_error_is_raised_when_the_store_is_unreachable(
    harness: SubmitterHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Sequence[Plan]] = []

    async def fail(plans: Sequence[Plan], **_: Any) -> Any:
        calls.append(plans)
        raise errors.StoreUnreachableError("connection refused")

    original = harness.store.submit
    monkeypatch.setattr(harness.store, "submit", fail)
    with pytest.raises(errors.StoreUnreachableError):
        await harness.apply(cluster.job("a"), cluster.job("b"))
    monkeypatch.setattr(harness.store, "submit", original)
    assert len(calls) == 1


async def _counted(harness: SubmitterHarness, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the plans of each call of the store."""
    calls: list[int] = []
    original = harness.store.submit

    async def counted(plans: Sequence[Plan], **how: Any) -> Any:
        calls.append(len(plans))
        if any(plan.identity.name.startswith("strange") for plan in plans):
            raise ValueError("unexpected plan")
        return await original(plans, **how)

    monkeypatch.setattr(harness.store, "submit", counted)
    return calls


async def test_each_object_of_a_cycle_is_submitted_alone_and_the_others_together(
    fresh_database: str, handler: ObjectHandler, time: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await connect.connect(fresh_database, clock=time, rng=random.Random(1))
    harness = SubmitterHarness(store, handler)
    calls = await _counted(harness, monkeypatch)
    pairs = [(f"one-{at}", f"two-{at}") for at in range(5)]
    bad = [
        cluster.job(name, dependsOn=[{"name": other}])
        for pair in pairs
        for name, other in (pair, pair[::-1])
    ]
    good = [cluster.job(f"good-{at}") for at in range(90)]
    raws = [raw for at, one in enumerate(bad) for raw in (one, *good[9 * at : 9 * at + 9])]
    cached = await harness.apply(*raws)
    assert calls == [100, 90, *(10 * [1])]
    assert all(one.run is not None for one in cached if one.latest.name.startswith("good"))
    assert sum(one.rejection is not None for one in cached) == len(pairs)
    await store.close()


async def test_other_objects_are_submitted_when_one_causes_an_unexpected_error(
    harness: SubmitterHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _counted(harness, monkeypatch)
    first, strange, last = await harness.apply(
        cluster.job("a"), cluster.job("strange"), cluster.job("b")
    )
    assert first.run is not None
    assert last.run is not None
    assert strange.rejection is not None
    assert strange.rejection.message == "cannot store the object: unexpected plan"


@pytest.mark.parametrize("error", [errors.StoreDataError("no"), ValueError("no")])
async def test_other_updates_are_made_when_one_fails(
    harness: SubmitterHarness, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    one, other = cluster.job("one"), cluster.job("other")
    [strange, fine] = await harness.apply(one, other)
    original = harness.store.update_run

    async def edit(run: JobId, update: RunUpdate) -> bool:
        if run == strange.run:
            raise error
        return await original(run, update)

    monkeypatch.setattr(harness.store, "update_run", edit)
    await harness.apply(cluster.edited(one, suspend=True), cluster.edited(other, suspend=True))
    assert await harness.state(strange) == State.QUEUED
    assert await harness.state(fine) == State.WAITING


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"env": [{"name": "A", "value": "\ud800"}]}, "has half of a surrogate pair"),
        ({"priority": 1 << 80}, "spec.priority: must be"),
        ({"maxAttempts": float("nan")}, "spec.maxAttempts: must be"),
    ],
    ids=["half", "huge", "nan"],
)
async def test_object_is_rejected_when_only_a_lenient_json_reader_accepts_it(
    harness: SubmitterHarness, spec: Raw, message: str
) -> None:
    [cached] = await harness.apply(cluster.job(**spec))
    assert cached.rejection is not None
    assert message in cached.rejection.message


async def test_status_and_managed_fields_are_not_queued(harness: SubmitterHarness) -> None:
    raw = cluster.with_status(cluster.job(), phase="Waiting", message="long")
    raw["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    harness.handler.handle(Kind.JOB, raw)
    [item] = await harness.handler.workqueue.take(10, 1000)
    assert item.decode().keys() == raw.keys() - {"status"}
    assert item.decode()["metadata"].keys() == raw["metadata"].keys() - {"managedFields"}


async def test_large_workflows_are_submitted_one_by_one_after_newer_small_objects(
    harness: SubmitterHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.submitter = Submitter(
        *(harness.store, harness.handler.workqueue, harness.handler.objects),
        cluster.not_terminating,
        max_rows=10,
    )
    calls: list[list[str]] = []
    original = harness.store.submit

    async def submit(plans: Sequence[Plan], **how: Any) -> Any:
        calls.append([plan.identity.name for plan in plans])
        if calls[-1] == ["large-0"]:
            harness.handler.handle(Kind.JOB, cluster.job("late"))
        return await original(plans, **how)

    monkeypatch.setattr(harness.store, "submit", submit)
    large = [cluster.workflow(f"large-{at}", {"name": "a", "count": 20}) for at in range(3)]
    await harness.apply(cluster.job("first"), *large)
    assert calls == [["first"], ["large-0"], ["late"], ["large-1"], ["large-2"]]

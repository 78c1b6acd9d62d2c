"""A resync finds what watches have missed, and cancels no run whose object may still exist."""

import random
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from tests.controller import cluster, counters
from tests.controller.cluster import Raw
from tests.controller.manual_clock import ManualClock
from workron.core.plan import Kind
from workron.core.states import State
from workron.store.api import Store
from workron.store.types import Session
from workron_controller.jobs.cache import ObjectCache
from workron_controller.jobs.custom_objects import CustomObjects
from workron_controller.jobs.object_handler import ObjectHandler
from workron_controller.jobs.resync import Resync
from workron_controller.jobs.submitter import Submitter
from workron_controller.kube import errors


class FakeObjects(CustomObjects):
    """The objects of a cluster, listed in pages of two, with failures."""

    def __init__(self) -> None:  # without an API server
        self.objects: list[Raw] = []
        self.namespaces: set[str] | None = None
        self.fails_after: int | None = None
        self.added_while_listing: list[Raw] = []
        """Objects that are created while the list is read."""

    async def list_pages(self, kind: Kind) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        found = [raw for raw in self.objects if raw["kind"] == kind]
        for number, first in enumerate(range(0, len(found), 2)):
            if number == self.fails_after:
                raise errors.UnreachableError("connection lost")
            yield found[first : first + 2]
        self.objects += self.added_while_listing

    def covers(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    async def find_uid(self, kind: Kind, namespace: str, name: str) -> uuid.UUID | None:
        found = [
            cluster.uid_of(raw)
            for raw in self.objects
            if raw["kind"] == kind
            and raw["metadata"]["namespace"] == namespace
            and raw["metadata"]["name"] == name
        ]
        return found[-1] if found else None


class ResyncHarness:
    def __init__(self, store: Store, handler: ObjectHandler, time: ManualClock) -> None:
        self.store = store
        self.handler = handler
        self.clock = time
        self.cluster = FakeObjects()
        self.resync = Resync(self.cluster, store, handler, time, random.Random(1))

    async def resync_and_submit(self) -> None:
        self.clock.advance(60)
        await self.resync.run_once()
        submitter = Submitter(
            self.store, self.handler.workqueue, self.handler.objects, cluster.not_terminating
        )
        while len(self.handler.workqueue):
            await submitter.process(await self.handler.workqueue.take(100, 1 << 20))

    async def states(self) -> dict[str, str]:
        return {
            head.run.name: str(head.job.state) for head in await self.store.list_run_summaries()
        }


@pytest.fixture
def harness(store: Store, handler: ObjectHandler, time: ManualClock) -> ResyncHarness:
    return ResyncHarness(store, handler, time)


async def test_objects_are_submitted_when_no_watch_has_reported_them(
    harness: ResyncHarness,
) -> None:
    harness.cluster.objects = [cluster.job(f"job-{at}") for at in range(5)]
    harness.cluster.objects.append(cluster.workflow("flow", {"name": "a"}))
    await harness.resync_and_submit()
    assert len(await harness.states()) == 6


async def test_run_is_cancelled_when_its_object_was_deleted_without_a_watch(
    harness: ResyncHarness,
) -> None:
    harness.cluster.objects = [cluster.job(name) for name in ("a", "b", "c")]
    await harness.resync_and_submit()
    del harness.cluster.objects[1]
    await harness.resync_and_submit()
    assert await harness.states() == {
        "a": State.QUEUED, "b": State.CANCELLED, "c": State.QUEUED,
    }  # fmt: skip
    assert len(harness.handler.objects) == 2


async def test_run_is_cancelled_when_another_object_has_its_name(harness: ResyncHarness) -> None:
    harness.cluster.objects = [cluster.job("a")]
    await harness.resync_and_submit()
    harness.cluster.objects = [cluster.job("a")]
    await harness.resync_and_submit()
    rows = [str(head.job.state) for head in await harness.store.list_run_summaries()]
    assert rows == [State.QUEUED, State.CANCELLED]


async def test_ended_run_is_found_after_a_restart_when_its_status_is_not_written(
    harness: ResyncHarness, store: Store, session: Session
) -> None:
    raws = [cluster.job("unreported"), cluster.job("reported")]
    harness.cluster.objects = raws
    await harness.resync_and_submit()
    for one in await cluster.claimed(store, session, 2):
        await cluster.ended(store, session, one)
    assert await store.list_owned(10) == []
    harness.cluster.objects = [raws[0], cluster.with_status(raws[1], phase="Succeeded")]
    harness.handler = ObjectHandler(ObjectCache(), harness.handler.workqueue)
    harness.resync = Resync(
        harness.cluster, store, harness.handler, harness.clock, random.Random(1)
    )
    await harness.resync_and_submit()
    found = {
        cached.latest.name: (cached.run is not None, cached.is_active)
        for cached in harness.handler.objects
    }
    assert found == {
        "unreported": (True, True), "reported": (False, False),
    }  # fmt: skip


def _missed(harness: ResyncHarness) -> dict[str, int]:
    counts = counters.by_labels(harness.handler.missed_changes.counter)
    return {change: int(count) for (change,), count in counts.items() if count}


async def test_change_is_counted_when_only_a_resync_finds_it(harness: ResyncHarness) -> None:
    kept, deleted = cluster.job("kept"), cluster.job("deleted")
    harness.cluster.objects = [kept, deleted]
    await harness.resync_and_submit()
    # No watch could have reported them before the first resync.
    assert _missed(harness) == {}
    spec_write = {"manager": "kubectl", "time": "2026-01-01T00:01:10Z"}
    status_write = {"manager": "ours", "time": "2026-01-01T00:03:00Z", "subresource": "status"}
    edited = cluster.edited(kept, priority=1)
    edited["metadata"]["managedFields"] = [status_write, spec_write]
    harness.cluster.objects = [edited, cluster.job("new")]
    await harness.resync_and_submit()
    assert _missed(harness) == {"Added": 1, "Edited": 1}
    await harness.resync_and_submit()
    assert _missed(harness) == {"Added": 1, "Edited": 1, "Deleted": 1}
    await harness.resync_and_submit()
    assert _missed(harness) == {"Added": 1, "Edited": 1, "Deleted": 1}


async def test_change_is_not_counted_when_a_watch_may_still_report_it(
    harness: ResyncHarness,
) -> None:
    kept, deleted = cluster.job("kept"), cluster.job("deleted")
    harness.cluster.objects = [kept, deleted]
    await harness.resync_and_submit()
    new, edited = cluster.job("new"), cluster.edited(kept, priority=1)
    new["metadata"]["creationTimestamp"] = "2026-01-01T00:01:50Z"
    spec_write = {"manager": "kubectl", "time": "2026-01-01T00:01:50Z"}
    edited["metadata"]["managedFields"] = [spec_write]
    harness.cluster.objects = [edited, new]
    await harness.resync_and_submit()
    harness.handler.handle(Kind.JOB, deleted, is_deleted=True)
    await harness.resync_and_submit()
    assert _missed(harness) == {}


@pytest.mark.parametrize("about", [{}, {"creationTimestamp": "forged"}, {"creationTimestamp": 5}])
async def test_change_is_not_counted_when_its_time_is_unknown(
    harness: ResyncHarness, about: dict[str, Any]
) -> None:
    await harness.resync_and_submit()
    new = cluster.job("new")
    del new["metadata"]["creationTimestamp"]
    new["metadata"] |= about
    harness.cluster.objects = [new]
    await harness.resync_and_submit()
    edited = cluster.edited(new, priority=1)
    edited["metadata"]["managedFields"] = [{"time": "forged"}, {"manager": "unknown"}]
    harness.cluster.objects = [edited]
    await harness.resync_and_submit()
    assert _missed(harness) == {}


async def test_no_run_is_cancelled_when_the_list_is_incomplete(harness: ResyncHarness) -> None:
    harness.cluster.objects = [cluster.job(f"job-{at}") for at in range(5)]
    await harness.resync_and_submit()
    harness.cluster.objects.pop()
    harness.cluster.fails_after = 1
    with pytest.raises(errors.UnreachableError):
        await harness.resync_and_submit()
    assert set((await harness.states()).values()) == {State.QUEUED}


async def test_run_stays_when_its_unlisted_object_is_found_by_name(harness: ResyncHarness) -> None:
    raw = cluster.job("late")
    harness.cluster.objects = [raw]
    await harness.resync_and_submit()
    harness.cluster.objects, harness.cluster.added_while_listing = [], [raw]
    await harness.resync_and_submit()
    assert await harness.states() == {"late": State.QUEUED}


async def test_run_stays_when_it_was_submitted_after_the_list_began(
    harness: ResyncHarness, store: Store
) -> None:
    raw = cluster.job("new")
    harness.handler.handle(Kind.JOB, raw)
    harness.clock.advance(60)
    submitter = Submitter(
        store, harness.handler.workqueue, harness.handler.objects, cluster.not_terminating
    )
    await submitter.process(await harness.handler.workqueue.take(10, 1000))
    await harness.resync.run_once()
    assert await harness.states() == {"new": State.QUEUED}
    assert len(harness.handler.workqueue) == 0


async def test_run_stays_when_its_namespace_is_not_watched_any_more(harness: ResyncHarness) -> None:
    harness.cluster.objects = [cluster.job("a")]
    await harness.resync_and_submit()
    harness.cluster.objects, harness.cluster.namespaces = [], {"elsewhere"}
    await harness.resync_and_submit()
    assert await harness.states() == {"a": State.QUEUED}


async def test_object_stays_in_the_cache_when_it_is_created_while_listing(
    harness: ResyncHarness,
) -> None:
    new = cluster.job("new")

    class AddingCluster(FakeObjects):
        async def list_pages(self, kind: Kind) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
            harness.handler.handle(Kind.JOB, new)
            async for page in super().list_pages(kind):
                yield page

    resync = Resync(
        AddingCluster(), harness.store, harness.handler, harness.clock, random.Random(1)
    )
    await resync.run_once()
    assert harness.handler.objects.get(cluster.uid_of(new)) is not None


async def test_forged_end_in_a_status_keeps_the_object_active(
    harness: ResyncHarness, store: Store
) -> None:
    raw = cluster.job("forged")
    harness.cluster.objects = [raw]
    await harness.resync_and_submit()
    harness.cluster.objects = [cluster.with_status(raw, phase="Succeeded")]
    harness.handler = ObjectHandler(ObjectCache(), harness.handler.workqueue)
    harness.resync = Resync(
        harness.cluster, store, harness.handler, harness.clock, random.Random(1)
    )
    await harness.resync_and_submit()
    [cached] = list(harness.handler.objects)
    assert cached.is_active

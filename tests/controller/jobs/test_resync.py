"""Comparing finds what watches have missed, and takes nothing for gone that may be there."""

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


class Cluster(CustomObjects):
    """What is there, in pages of two; and what goes wrong."""

    def __init__(self) -> None:  # without an API server
        self.there: list[Raw] = []
        self.namespaces: set[str] | None = None
        self.fails_after: int | None = None
        self.between: list[Raw] = []
        """Comes into being while the list is read."""

    async def list_pages(self, kind: Kind) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        found = [raw for raw in self.there if raw["kind"] == kind]
        for number, first in enumerate(range(0, len(found), 2)):
            if number == self.fails_after:
                raise errors.UnreachableError("cut off")
            yield found[first : first + 2]
        self.there += self.between

    def covers(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    async def find_uid(self, kind: Kind, namespace: str, name: str) -> uuid.UUID | None:
        found = [
            cluster.uid_of(raw)
            for raw in self.there
            if raw["kind"] == kind
            and raw["metadata"]["namespace"] == namespace
            and raw["metadata"]["name"] == name
        ]
        return found[-1] if found else None


class Scene:
    def __init__(self, store: Store, handler: ObjectHandler, time: ManualClock) -> None:
        self.store = store
        self.handler = handler
        self.clock = time
        self.cluster = Cluster()
        self.resync = Resync(self.cluster, store, handler, time, random.Random(1))

    async def compare(self) -> None:
        self.clock.turn(60)
        await self.resync.run_once()
        submitter = Submitter(self.store, self.handler.workqueue, self.handler.objects)
        while len(self.handler.workqueue):
            await submitter.process(await self.handler.workqueue.take(100, 1 << 20))

    async def states(self) -> dict[str, str]:
        return {
            head.run.name: str(head.job.state) for head in await self.store.list_run_summaries()
        }


@pytest.fixture
def scene(store: Store, handler: ObjectHandler, time: ManualClock) -> Scene:
    return Scene(store, handler, time)


async def test_what_no_watch_has_told_of_is_found(scene: Scene) -> None:
    scene.cluster.there = [cluster.job(f"job-{at}") for at in range(5)]
    scene.cluster.there.append(cluster.workflow("flow", {"name": "a"}))
    await scene.compare()
    assert len(await scene.states()) == 6


async def test_what_was_deleted_while_nobody_watched_is_cancelled(scene: Scene) -> None:
    scene.cluster.there = [cluster.job(name) for name in ("a", "b", "c")]
    await scene.compare()
    del scene.cluster.there[1]
    await scene.compare()
    assert await scene.states() == {
        "a": State.QUEUED, "b": State.CANCELLED, "c": State.QUEUED,
    }  # fmt: skip
    assert len(scene.handler.objects) == 2


async def test_what_came_anew_under_its_name_is_no_proof_that_it_is_there(scene: Scene) -> None:
    scene.cluster.there = [cluster.job("a")]
    await scene.compare()
    scene.cluster.there = [cluster.job("a")]
    await scene.compare()
    rows = [str(head.job.state) for head in await scene.store.list_run_summaries()]
    assert rows == [State.QUEUED, State.CANCELLED]


async def test_root_that_ended_unheard_of_is_known_again_after_a_restart(
    scene: Scene, store: Store, session: Session
) -> None:
    raws = [cluster.job("untold"), cluster.job("told")]
    scene.cluster.there = raws
    await scene.compare()
    for one in await cluster.claimed(store, session, 2):
        await cluster.ended(store, session, one)
    assert await store.list_owned(10) == []
    scene.cluster.there = [raws[0], cluster.told(raws[1], phase="Succeeded")]
    scene.handler = ObjectHandler(ObjectCache(), scene.handler.workqueue)
    scene.resync = Resync(scene.cluster, store, scene.handler, scene.clock, random.Random(1))
    await scene.compare()
    found = {
        seen.latest.name: (seen.run is not None, seen.is_active) for seen in scene.handler.objects
    }
    assert found == {
        "untold": (True, True), "told": (False, False),
    }  # fmt: skip


def _missed(scene: Scene) -> dict[str, int]:
    counts = counters.by_labels(scene.handler.missed_changes.counter)
    return {change: int(count) for (change,), count in counts.items() if count}


async def test_what_only_a_comparison_finds_is_counted(scene: Scene) -> None:
    kept, gone = cluster.job("kept"), cluster.job("gone")
    scene.cluster.there = [kept, gone]
    await scene.compare()
    # Nobody had watched before.
    assert _missed(scene) == {}
    wrote = {"manager": "kubectl", "time": "2026-01-01T00:01:10Z"}
    told = {"manager": "ours", "time": "2026-01-01T00:03:00Z", "subresource": "status"}
    later = cluster.edited(kept, priority=1)
    later["metadata"]["managedFields"] = [told, wrote]
    scene.cluster.there = [later, cluster.job("new")]
    await scene.compare()
    assert _missed(scene) == {"Added": 1, "Edited": 1}
    await scene.compare()
    assert _missed(scene) == {"Added": 1, "Edited": 1, "Deleted": 1}
    await scene.compare()
    assert _missed(scene) == {"Added": 1, "Edited": 1, "Deleted": 1}


async def test_what_a_watch_is_about_to_tell_is_not_counted(scene: Scene) -> None:
    kept, gone = cluster.job("kept"), cluster.job("gone")
    scene.cluster.there = [kept, gone]
    await scene.compare()
    new, later = cluster.job("new"), cluster.edited(kept, priority=1)
    new["metadata"]["creationTimestamp"] = "2026-01-01T00:01:50Z"
    wrote = {"manager": "kubectl", "time": "2026-01-01T00:01:50Z"}
    later["metadata"]["managedFields"] = [wrote]
    scene.cluster.there = [later, new]
    await scene.compare()
    scene.handler.handle_delete(Kind.JOB, gone)
    await scene.compare()
    assert _missed(scene) == {}


@pytest.mark.parametrize("about", [{}, {"creationTimestamp": "forged"}, {"creationTimestamp": 5}])
async def test_what_does_not_say_when_it_was_is_not_counted(
    scene: Scene, about: dict[str, Any]
) -> None:
    await scene.compare()
    new = cluster.job("new")
    del new["metadata"]["creationTimestamp"]
    new["metadata"] |= about
    scene.cluster.there = [new]
    await scene.compare()
    edited = cluster.edited(new, priority=1)
    edited["metadata"]["managedFields"] = [{"time": "forged"}, {"manager": "nobody"}]
    scene.cluster.there = [edited]
    await scene.compare()
    assert _missed(scene) == {}


async def test_list_that_was_cut_off_is_no_proof(scene: Scene) -> None:
    scene.cluster.there = [cluster.job(f"job-{at}") for at in range(5)]
    await scene.compare()
    scene.cluster.there.pop()
    scene.cluster.fails_after = 1
    with pytest.raises(errors.UnreachableError):
        await scene.compare()
    assert set((await scene.states()).values()) == {State.QUEUED}


async def test_what_is_missing_in_the_list_and_there_by_name_stays(scene: Scene) -> None:
    raw = cluster.job("late")
    scene.cluster.there = [raw]
    await scene.compare()
    scene.cluster.there, scene.cluster.between = [], [raw]
    await scene.compare()
    assert await scene.states() == {"late": State.QUEUED}


async def test_what_was_stored_since_the_list_began_stays(scene: Scene, store: Store) -> None:
    raw = cluster.job("new")
    scene.handler.handle_update(Kind.JOB, raw)
    scene.clock.turn(60)
    submitter = Submitter(store, scene.handler.workqueue, scene.handler.objects)
    await submitter.process(await scene.handler.workqueue.take(10, 1000))
    await scene.resync.run_once()
    assert await scene.states() == {"new": State.QUEUED}
    assert len(scene.handler.workqueue) == 0


async def test_change_of_scope_deletes_nothing(scene: Scene) -> None:
    scene.cluster.there = [cluster.job("a")]
    await scene.compare()
    scene.cluster.there, scene.cluster.namespaces = [], {"elsewhere"}
    await scene.compare()
    assert await scene.states() == {"a": State.QUEUED}


async def test_what_comes_while_it_is_listed_is_not_forgotten(scene: Scene) -> None:
    new = cluster.job("new")

    class Rings(Cluster):
        async def list_pages(self, kind: Kind) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
            scene.handler.handle_update(Kind.JOB, new)
            async for page in super().list_pages(kind):
                yield page

    resync = Resync(Rings(), scene.store, scene.handler, scene.clock, random.Random(1))
    await resync.run_once()
    assert scene.handler.objects.get(cluster.uid_of(new)) is not None


async def test_end_that_somebody_else_wrote_is_seen_through(scene: Scene, store: Store) -> None:
    raw = cluster.job("forged")
    scene.cluster.there = [raw]
    await scene.compare()
    scene.cluster.there = [cluster.told(raw, phase="Succeeded")]
    scene.handler = ObjectHandler(ObjectCache(), scene.handler.workqueue)
    scene.resync = Resync(scene.cluster, store, scene.handler, scene.clock, random.Random(1))
    await scene.compare()
    [seen] = list(scene.handler.objects)
    assert seen.is_active

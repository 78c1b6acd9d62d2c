"""Pools from their first job to their last worker, over a cluster in memory and a real store."""

from tests.controller.workerpools.conftest import Begin, Farm
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.core.model.status import WorkerPoolStatus
from workron.core.states import State
from workron.store.api import Store
from workron_controller.kube import errors, resources
from workron_controller.workerpools.autoscaler import SCALE_DOWN_SECONDS


async def test_first_job_brings_a_worker_that_runs_it(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    pool = yard.pool("lab", "gpu")
    controller = begin()
    await farm.turn(controller)
    assert yard.writes() == ["status workerpools.workron.dev/status lab/gpu"]
    assert conditions(pool) == {"Ready": "ScaledToZero"}
    [job] = await farm.submit()
    await farm.turn(controller)
    [pod] = yard.pods()
    assert pool["status"]["desiredReplicas"] == 1
    assert conditions(pool) == {"not Ready": "Starting", "Reconciling": "Starting"}
    await farm.start(pod)
    await farm.turn(controller)
    assert conditions(pool) == {"Ready": "Ready"}
    await farm.finish(pod, *await farm.take(pod))
    [row] = await store.get_jobs([job])
    assert row.state is State.SUCCEEDED


async def test_status_counts_what_there_is(begin: Begin, yard: FakeCluster, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", slots=2)
    controller = begin()
    await farm.submit(5)
    await farm.come_up(controller)
    await farm.take(yard.pods()[0], 2)
    await farm.turn(controller, 10)
    await farm.turn(controller)
    WorkerPoolStatus.parse(pool["status"])
    told = {key: value for key, value in pool["status"].items() if key != "conditions"}
    assert told == {
        "desiredReplicas": 3,
        "replicas": 3,
        "readyReplicas": 3,
        "busy": 2,
        "queued": 3,
        "selector": "app.kubernetes.io/managed-by=workron-controller,workron.dev/pool=gpu",
        "observedGeneration": 1,
    }


async def test_nothing_is_written_while_nothing_changes(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=2)
    controller = begin()
    await farm.come_up(controller)
    await farm.turn(controller)
    before = len(yard.writes())
    for _ in range(5):
        await farm.turn(controller, 20)
    assert len(yard.writes()) == before


async def test_workers_go_when_they_were_not_needed_for_long_and_busy_ones_end_in_peace(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    yard.pool("lab", "gpu", slots=1)
    controller = begin()
    await farm.submit(3)
    await farm.come_up(controller)
    first, second, third = yard.pods()
    [one] = await farm.take(second)
    for pod in (first, third):
        await farm.finish(pod, *await farm.take(pod))
    await farm.turn(controller, SCALE_DOWN_SECONDS - 10)
    assert farm.ending() == []
    await farm.turn(controller, 20)
    await farm.turn(controller)
    assert farm.ending() == [first, third]
    assert [row.is_draining for row in await store.list_workers()] == [True, False, True]
    await farm.depart_all()
    await farm.finish(second, one)
    await farm.turn(controller, SCALE_DOWN_SECONDS)
    await farm.turn(controller)
    assert farm.ending() == [second]
    assert yard.replicas() == [0]


async def test_new_revision_takes_the_place_of_the_old_one_and_ends_nobody_early(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", replicas=2)
    controller = begin()
    await farm.come_up(controller)
    old = yard.pods()
    await farm.submit(2)
    for pod in old:
        await farm.take(pod)
    pool["metadata"]["generation"] += 1
    pool["spec"]["image"] = "theirs:2"
    await farm.turn(controller)
    assert farm.ending() == []
    assert len(yard.pods()) == 3
    await farm.start_all()
    await farm.turn(controller)
    assert len(farm.ending()) == 1
    await farm.come_up(controller)
    assert farm.ending() == old
    await farm.depart_all()
    await farm.turn(controller)
    assert yard.replicas() == [2]
    images = {pod["spec"]["initContainers"][1]["image"] for pod in yard.pods()}
    assert images == {"theirs:2"}


async def test_pool_that_is_being_deleted_is_let_be(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    await farm.turn(begin())
    assert yard.writes() == []


async def test_pool_that_was_made_again_is_another_one(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    controller = begin()
    await farm.come_up(controller)
    del yard.objects[resources.WORKERPOOLS, "lab", "gpu"]
    again = yard.pool("lab", "gpu", minReplicas=1)
    await farm.turn(controller)
    await farm.turn(controller)
    [one] = yard.all(resources.REPLICA_SETS)
    assert one["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]


async def test_number_that_somebody_wrote_is_meant_at_once(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", replicas=3)
    controller = begin()
    await farm.come_up(controller)
    assert len(yard.pods()) == 3
    yard.pool("lab", "gpu", replicas=0)
    await farm.turn(controller)
    assert len(farm.ending()) == 3


async def test_conflict_is_no_trouble(begin: Begin, yard: FakeCluster, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    controller = begin()
    yard.fail("create", resources.REPLICA_SETS, errors.ConflictError("409 exists"))
    await farm.turn(controller)
    assert conditions(pool) == {"not Ready": "Starting", "Reconciling": "Starting"}
    await farm.come_up(controller)
    assert conditions(pool) == {"Ready": "Ready"}


async def test_edition_of_the_lease_reaches_the_store(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    controller = begin()
    await farm.come_up(controller)
    yard.pool("lab", "gpu", minReplicas=1, lease="40s")
    await farm.turn(controller)
    session = await farm.start(yard.pods()[0])
    assert session.lease_seconds == 40


async def test_mere_numbers_are_written_at_times(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    controller = begin()
    await farm.come_up(controller)
    await farm.turn(controller)
    before = len(yard.writes())
    await farm.submit(2)
    await farm.turn(controller)
    assert len(yard.writes()) == before
    await farm.turn(controller, 10)
    await farm.turn(controller)
    assert pool["status"]["queued"] == 2


async def test_edition_of_a_pool_that_does_nothing_is_heard_at_once(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu")
    controller = begin()
    await farm.turn(controller)
    yard.pool("lab", "gpu", slots=7)
    await farm.turn(controller)
    assert pool["status"]["observedGeneration"] == 2


async def test_set_that_somebody_else_changes_is_as_it_should_be_at_the_next_look(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", replicas=2)
    controller = begin()
    await farm.come_up(controller)
    [one] = yard.all(resources.REPLICA_SETS)
    for theirs in (5, 0):
        one["spec"]["replicas"] = theirs
        await farm.turn(controller)
        assert yard.replicas() == [2]
    del yard.objects[resources.REPLICA_SETS, "lab", one["metadata"]["name"]]
    yard.work()
    assert yard.pods() == []
    await farm.come_up(controller)
    assert len(yard.pods()) == 2

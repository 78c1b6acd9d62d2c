"""Pools from their first job to their last worker, over a cluster in memory and a real store."""

import asyncio
from unittest import mock
from urllib import parse

import pytest

from tests.controller.pools import yard as yards
from tests.controller.pools.conftest import Begin, Farm
from tests.controller.pools.yard import Yard, conditions
from workron.core.model.status import WorkerPoolStatus
from workron.core.states import State
from workron.store.protocol import Admission, Admitted, Store
from workron_controller import resources
from workron_controller.api import errors
from workron_controller.pools.scale import IDLE_SECONDS


async def test_first_job_brings_a_worker_that_runs_it(
    begin: Begin, yard: Yard, farm: Farm, store: Store
) -> None:
    pool = yard.pool("lab", "gpu")
    keeper = begin()
    await farm.turn(keeper)
    assert yard.writes() == ["status workerpools.workron.dev/status lab/gpu"]
    assert conditions(pool) == {"Ready": "NothingToDo"}
    [job] = await farm.submit()
    await farm.turn(keeper)
    [pod] = yard.pods()
    assert pool["status"]["desiredReplicas"] == 1
    assert conditions(pool) == {"not Ready": "Starting", "Reconciling": "Starting"}
    await farm.start(pod)
    await farm.turn(keeper)
    assert conditions(pool) == {"Ready": "Ready"}
    await farm.finish(pod, *await farm.take(pod))
    [row] = await store.standing([job])
    assert row.state is State.SUCCEEDED


async def test_status_counts_what_there_is(begin: Begin, yard: Yard, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", slots=2)
    keeper = begin()
    await farm.submit(5)
    await farm.come_up(keeper)
    await farm.take(yard.pods()[0], 2)
    await farm.turn(keeper, 10)
    await farm.turn(keeper)
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
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=2)
    keeper = begin()
    await farm.come_up(keeper)
    await farm.turn(keeper)
    before = len(yard.writes())
    for _ in range(5):
        await farm.turn(keeper, 20)
    assert len(yard.writes()) == before


async def test_workers_go_when_they_were_not_needed_for_long_and_busy_ones_end_in_peace(
    begin: Begin, yard: Yard, farm: Farm, store: Store
) -> None:
    yard.pool("lab", "gpu", slots=1)
    keeper = begin()
    await farm.submit(3)
    await farm.come_up(keeper)
    first, second, third = yard.pods()
    [one] = await farm.take(second)
    for pod in (first, third):
        await farm.finish(pod, *await farm.take(pod))
    await farm.turn(keeper, IDLE_SECONDS - 10)
    assert farm.ending() == []
    await farm.turn(keeper, 20)
    await farm.turn(keeper)
    assert farm.ending() == [first, third]
    assert [row.is_draining for row in await store.staff()] == [True, False, True]
    await farm.depart_all()
    await farm.finish(second, one)
    await farm.turn(keeper, IDLE_SECONDS)
    await farm.turn(keeper)
    assert farm.ending() == [second]
    assert yard.replicas() == [0]


async def test_new_revision_takes_the_place_of_the_old_one_and_ends_nobody_early(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", replicas=2)
    keeper = begin()
    await farm.come_up(keeper)
    old = yard.pods()
    await farm.submit(2)
    for pod in old:
        await farm.take(pod)
    pool["metadata"]["generation"] += 1
    pool["spec"]["image"] = "theirs:2"
    await farm.turn(keeper)
    assert farm.ending() == []
    assert len(yard.pods()) == 3
    await farm.start_all()
    await farm.turn(keeper)
    assert len(farm.ending()) == 1
    await farm.come_up(keeper)
    assert farm.ending() == old
    await farm.depart_all()
    await farm.turn(keeper)
    assert yard.replicas() == [2]
    images = {pod["spec"]["initContainers"][1]["image"] for pod in yard.pods()}
    assert images == {"theirs:2"}


async def test_pool_that_is_being_deleted_is_let_be(begin: Begin, yard: Yard, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    await farm.turn(begin())
    assert yard.writes() == []


async def test_pool_that_was_made_again_is_another_one(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    keeper = begin()
    await farm.come_up(keeper)
    del yard.objects[resources.POOLS, "lab", "gpu"]
    again = yard.pool("lab", "gpu", minReplicas=1)
    await farm.turn(keeper)
    await farm.turn(keeper)
    [one] = yard.all(resources.REPLICA_SETS)
    assert one["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]


async def test_number_that_somebody_wrote_is_meant_at_once(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", replicas=3)
    keeper = begin()
    await farm.come_up(keeper)
    assert len(yard.pods()) == 3
    yard.pool("lab", "gpu", replicas=0)
    await farm.turn(keeper)
    assert len(farm.ending()) == 3


async def test_pools_share_the_connections_of_the_database(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pools = [yard.pool("lab", name, replicas=9) for name in ("a", "b")]
    keeper = begin(connections=4 * 10)
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert yard.replicas() == [5, 5]
    await farm.come_up(keeper)
    assert conditions(pools[0]) == {"Ready": "Ready", "Stalled": "ConnectionBudget"}
    assert "9 workers are wanted, and there may be 5" in str(pools[0]["status"])


async def test_pool_gets_no_worker_before_another_one_has_given_way(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "a", replicas=10)
    keeper = begin(connections=4 * 10)
    await farm.come_up(keeper)
    yard.pool("lab", "b", replicas=3)
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert sorted(yard.replicas()) == [0, 7]
    await farm.depart(farm.ending()[0])
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert sorted(yard.replicas()) == [1, 7]
    await farm.depart_all()
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert sorted(yard.replicas()) == [3, 7]


async def test_workers_of_a_pool_that_was_deleted_have_their_connections_until_they_end(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "a", replicas=6)
    keeper = begin(connections=4 * 10)
    await farm.come_up(keeper)
    del yard.objects[resources.POOLS, "lab", "a"]
    yard.pool("lab", "b", replicas=10)
    for _ in range(3):
        await farm.turn(keeper)
    assert yard.replicas() == [4]
    for session in farm.sessions.values():
        await farm.store.leave(session.key)
    await farm.turn(keeper)
    assert yard.replicas() == [10]


async def test_conflict_is_no_trouble(begin: Begin, yard: Yard, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    keeper = begin()
    yard.fail("create", resources.REPLICA_SETS, errors.ConflictError("409 exists"))
    await farm.turn(keeper)
    assert conditions(pool) == {"not Ready": "Starting", "Reconciling": "Starting"}
    await farm.come_up(keeper)
    assert conditions(pool) == {"Ready": "Ready"}


async def test_secret_that_is_lost_is_made_again(begin: Begin, yard: Yard, farm: Farm) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    keeper = begin()
    await farm.turn(keeper)
    key = resources.SECRETS, "lab", "workron-pool-gpu"
    lost = yard.objects.pop(key)
    [pod] = yard.pods()
    state = {"waiting": {"reason": "CreateContainerConfigError"}}
    pod["status"] = {"containerStatuses": [{"name": "agent", "state": state}]}
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert yard.objects[key]["data"]["token"] != lost["data"]["token"]
    await farm.start(pod)


async def test_token_is_kept_and_made_good_again_at_times(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    keeper = begin()
    await farm.come_up(keeper)
    [secret] = yard.all(resources.SECRETS)
    before = dict(secret["data"])
    for _ in range(20):
        await farm.turn(keeper, 30 * 86_400)
    assert secret["data"] == before
    assert sum("secrets" in write for write in yard.writes()) == 1
    await farm.start(yard.pods()[0])


async def test_edition_of_the_lease_reaches_the_store(begin: Begin, yard: Yard, farm: Farm) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    keeper = begin()
    await farm.come_up(keeper)
    yard.pool("lab", "gpu", minReplicas=1, lease="40s")
    await farm.turn(keeper)
    session = await farm.start(yard.pods()[0])
    assert session.lease_seconds == 40


async def test_mere_numbers_are_written_at_times(begin: Begin, yard: Yard, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    keeper = begin()
    await farm.come_up(keeper)
    await farm.turn(keeper)
    before = len(yard.writes())
    await farm.submit(2)
    await farm.turn(keeper)
    assert len(yard.writes()) == before
    await farm.turn(keeper, 10)
    await farm.turn(keeper)
    assert pool["status"]["queued"] == 2


async def test_edition_of_a_pool_that_does_nothing_is_heard_at_once(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu")
    keeper = begin()
    await farm.turn(keeper)
    yard.pool("lab", "gpu", slots=7)
    await farm.turn(keeper)
    assert pool["status"]["observedGeneration"] == 2


async def test_jobs_of_workers_that_leave_ask_for_no_others(
    begin: Begin, yard: Yard, farm: Farm, store: Store
) -> None:
    yard.pool("lab", "gpu", slots=1)
    keeper = begin()
    await farm.submit(2)
    await farm.come_up(keeper)
    for pod in yard.pods():
        await farm.take(pod)
    leaving, _ = await store.staff()
    await store.drain(leaving.worker)
    await farm.turn(keeper, IDLE_SECONDS)
    await farm.turn(keeper)
    assert yard.replicas() == [1]
    [stays] = [pod for pod in yard.pods() if pod not in farm.ending()]
    assert stays["metadata"]["uid"] != leaving.name
    assert stays["status"] != {}


async def test_worker_that_was_chosen_in_vain_keeps_no_job_waiting(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", replicas=1, slots=2)
    keeper = begin()
    await farm.submit()
    await farm.come_up(keeper)
    [chosen] = yard.pods()
    await farm.take(chosen)
    yard.pool("lab", "gpu", replicas=0, slots=2)
    yard.fail("patch", resources.REPLICA_SETS, errors.PassingError("503 later"))
    await farm.turn(keeper)
    yard.pool("lab", "gpu", replicas=1, slots=2)
    await farm.submit()
    await farm.come_up(keeper)
    [other] = [pod for pod in yard.pods() if pod not in farm.ending()]
    assert other != chosen
    assert len(await farm.take(other)) == 1


async def test_new_leader_counts_workers_that_it_has_not_seen_yet(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("far", "a", replicas=10)
    await farm.come_up(begin(connections=4 * 10))
    yard.pool("lab", "b", replicas=3)
    yard.silent.add("far")
    successor = begin(connections=4 * 10)
    for _ in range(2):
        await successor.look()
        while not yard.all(resources.REPLICA_SETS, "lab"):
            await asyncio.sleep(0)
        yard.work()
    assert yard.replicas() == [0]


async def test_workers_of_a_pool_that_became_nonsense_count(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "bad", replicas=6)
    keeper = begin(connections=4 * 10)
    await farm.come_up(keeper)
    yard.pool("lab", "bad", slots="many")
    good = yard.pool("lab", "good", replicas=10)
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert conditions(good)["Stalled"] == "ConnectionBudget"


async def test_workers_move_with_the_database(
    begin: Begin, yard: Yard, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.pool("lab", "gpu", replicas=1)
    await farm.come_up(begin())
    [old] = yard.pods()
    monkeypatch.setattr(store, "url", "postgresql://new/jobs")
    for session in farm.sessions.values():
        await store.leave(session.key)
    yards.unready(old)
    keeper = begin()
    await farm.come_up(keeper)
    assert farm.ending() == [old]
    assert len(yard.pods()) == 2


async def test_set_that_somebody_else_changes_is_as_it_should_be_at_the_next_look(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", replicas=2)
    keeper = begin()
    await farm.come_up(keeper)
    [one] = yard.all(resources.REPLICA_SETS)
    for theirs in (5, 0):
        one["spec"]["replicas"] = theirs
        await farm.turn(keeper)
        assert yard.replicas() == [2]
    del yard.objects[resources.REPLICA_SETS, "lab", one["metadata"]["name"]]
    yard.work()
    assert yard.pods() == []
    await farm.come_up(keeper)
    assert len(yard.pods()) == 2


def _asked(admit: mock.AsyncMock) -> Admission:
    """Give what was asked for last."""
    admission: Admission = admit.await_args_list[-1].args[0]
    return admission


async def test_password_of_the_operator_never_becomes_that_of_a_pool(
    begin: Begin, yard: Yard, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "url", "postgresql://me:mine@db/jobs")
    admit = mock.AsyncMock(wraps=store.admit)
    monkeypatch.setattr(store, "admit", admit)
    yard.pool("lab", "gpu", minReplicas=1)
    await farm.turn(begin(is_role_shared=True))
    assert _asked(admit).password is None
    await farm.turn(begin())
    assert _asked(admit).password not in {None, "mine"}


async def test_workers_that_are_to_end_can_connect_until_they_have(
    begin: Begin, yard: Yard, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit = mock.AsyncMock(wraps=store.admit)
    monkeypatch.setattr(store, "admit", admit)
    yard.pool("lab", "gpu", replicas=9)
    keeper = begin()
    await farm.come_up(keeper)
    yard.pool("lab", "gpu", replicas=1)
    await farm.turn(keeper)
    assert _asked(admit).connections >= 4 * 9


async def test_password_of_a_pool_is_kept(
    begin: Begin, yard: Yard, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = "p@ss"
    admitted = Admitted(f"postgresql://pool:{parse.quote(word)}@db/jobs", 97)
    admit = mock.AsyncMock(return_value=admitted)
    monkeypatch.setattr(store, "admit", admit)
    yard.pool("lab", "gpu", minReplicas=1)
    for _ in range(2):
        await farm.turn(begin())
    assert _asked(admit).password == word
    assert _asked(admit).connections == 4 * (2 * 10 + 1)


async def test_secret_that_commands_lack_is_not_ours_to_make(
    begin: Begin, yard: Yard, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit = mock.AsyncMock(wraps=store.admit)
    monkeypatch.setattr(store, "admit", admit)
    pool = yard.pool("lab", "gpu", minReplicas=1)
    keeper = begin()
    await farm.turn(keeper)
    yards.waits(yard.pods()[0], "CreateContainerConfigError", 'secret "theirs" not found')
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert admit.await_count == 1
    assert conditions(pool)["Stalled"] == "PodsFail"


async def test_secret_that_somebody_spoilt_is_made_anew(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    await farm.turn(begin())
    [secret] = yard.all(resources.SECRETS)
    for spoilt in ({}, {"store": "?", "token": "?"}, {"store": "AAAA", "token": "/w=="}):
        secret["data"] = dict(spoilt)
        await farm.turn(begin())
        assert secret["data"].keys() == {"store", "token"}
        assert secret["data"] != spoilt

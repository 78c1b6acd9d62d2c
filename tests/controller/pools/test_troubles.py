"""Pools that cannot have their workers: each is told why, and none keeps another from its own."""

import asyncio
from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest
from structlog.testing import capture_logs

from tests.controller.pools import yard as yards
from tests.controller.pools.conftest import Begin, Farm
from tests.controller.pools.yard import Yard, conditions
from workron.core import errors as store_errors
from workron.core.model.pool import WorkerPool
from workron.store.protocol import Store
from workron_controller import resources
from workron_controller.api import errors
from workron_controller.pools.keeper import Keeper
from workron_controller.pools.scale import IDLE_SECONDS
from workron_controller.telling.notices import Notice, Subject

_COMMAND = (
    "kubectl create rolebinding workron-pools --clusterrole=workron-pools"
    " --serviceaccount=workron:workron-controller --namespace lab"
)


async def test_image_that_cannot_be_pulled(begin: Begin, yard: Yard, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", image="nowhere:1")
    keeper = begin()
    await farm.submit()
    await farm.turn(keeper)
    [pod] = yard.pods()
    yards.waits(pod, "ImagePullBackOff", 'no such image "nowhere:1"')
    await farm.turn(keeper)
    assert conditions(pool) == {"not Ready": "ImagePullFailed", "Stalled": "ImagePullFailed"}
    hint = keeper.hint("lab", "gpu")
    assert hint is not None
    assert (hint.reason, "nowhere:1" in hint.message) == ("ImagePullFailed", True)
    yard.pool("lab", "gpu", image="there:1")
    await farm.come_up(keeper)
    await farm.turn(keeper)
    assert conditions(pool) == {"Ready": "Ready"}
    assert keeper.hint("lab", "gpu") is None


async def test_bad_image_of_a_new_revision_costs_no_worker_of_the_old_one(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=2)
    keeper = begin()
    await farm.come_up(keeper)
    yard.pool("lab", "gpu", minReplicas=2, image="nowhere:1")
    await farm.turn(keeper)
    [new] = [pod for pod in yard.pods() if not pod["status"]]
    yards.waits(new, "ErrImagePull")
    for _ in range(5):
        await farm.turn(keeper)
    assert farm.ending() == []
    assert conditions(pool) == {"Ready": "Ready", "Stalled": "ImagePullFailed"}


async def test_trouble_is_a_notice_when_it_comes_or_changes_and_none_while_it_stays(
    begin: Begin, yard: Yard, farm: Farm, notices: list[Notice]
) -> None:
    pool = yard.pool("lab", "gpu", replicas=2, image="nowhere:1")
    keeper = begin()
    await farm.turn(keeper)
    assert notices == []
    for number, reason in enumerate(("ErrImagePull", "ImagePullBackOff", "ErrImagePull")):
        yards.waits(yard.pods()[number % 2], reason, f"try {number}")
        await farm.turn(keeper, 20)
    assert [notice.why.reason for notice in notices] == ["ImagePullFailed"]
    assert notices[0].subject == Subject("WorkerPool", "lab", "gpu", pool["metadata"]["uid"])
    begin_again = begin()
    await farm.turn(begin_again, 20)
    yard.quota = 0
    yard.pool("lab", "gpu", replicas=3, image="nowhere:1")
    for _ in range(3):
        await farm.turn(begin_again, 20)
    assert [notice.why.reason for notice in notices] == ["ImagePullFailed", "QuotaExceeded"]


async def test_database_that_is_away_is_a_notice_and_a_node_that_is_sought_is_none(
    begin: Begin, yard: Yard, farm: Farm, store: Store, notices: list[Notice]
) -> None:
    pool = yard.pool("lab", "gpu", replicas=1)
    keeper = begin()
    await farm.turn(keeper)
    [pod] = yard.pods()
    sought = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod["status"] = {"phase": "Pending", "conditions": [{**sought, "message": "0/1 nodes"}]}
    await farm.turn(keeper, 20)
    assert conditions(pool)["not Ready"] == "Unschedulable"
    assert notices == []
    away = store_errors.StoreAwayError("connection refused")
    with mock.patch.object(store, "staff", side_effect=away):
        for _ in range(3):
            await farm.turn(keeper, 20)
    assert [notice.why.reason for notice in notices] == ["DatabaseUnavailable"]


async def test_status_that_is_not_written_is_no_notice(
    begin: Begin, yard: Yard, farm: Farm, notices: list[Notice]
) -> None:
    yard.pool("lab", "gpu", slots="many")
    keeper = begin()
    yard.fail("status", resources.POOLS, errors.ForbiddenError("403"))
    await farm.turn(keeper, 20)
    assert notices == []
    await farm.turn(keeper, 20)
    assert [notice.why.reason for notice in notices] == ["InvalidSpec"]


async def test_status_that_may_not_be_written_is_tried_more_and_more_seldom(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", replicas=1)
    keeper = begin()
    yard.fail("status", resources.POOLS, errors.ForbiddenError("403"), times=1_000)
    for _ in range(600):
        await farm.turn(keeper, 2)
    # At once, and then 1, 2, 4, ... seconds later, up to 300.
    tries = [verb for verb, _ in yard.asked if verb == "status"]
    assert 9 <= len(tries) <= 12
    yard.stop_failing()
    for _ in range(150):
        await farm.turn(keeper, 2)
    assert conditions(pool)["not Ready"] == "Starting"


async def test_quota_that_is_full(begin: Begin, yard: Yard, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", replicas=3)
    yard.quota = 1
    keeper = begin()
    await farm.come_up(keeper)
    assert conditions(pool) == {"not Ready": "QuotaExceeded", "Stalled": "QuotaExceeded"}
    assert len(yard.pods()) == 1
    yard.quota = 3
    await farm.turn(keeper)
    await farm.come_up(keeper)
    assert conditions(pool) == {"Ready": "Ready"}


async def test_namespace_that_is_not_enabled_is_told_with_the_one_command(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu")
    yard.closed.add("lab")
    keeper = begin()
    await farm.submit()
    await farm.turn(keeper)
    told = {"not Ready": "NamespaceNotEnabled", "Stalled": "NamespaceNotEnabled"}
    assert conditions(pool) == told
    hint = keeper.hint("lab", "gpu")
    assert hint is not None
    assert hint.message.endswith(_COMMAND)
    yard.closed.clear()
    await farm.turn(keeper, IDLE_SECONDS)
    await farm.come_up(keeper)
    assert conditions(pool) == {"Ready": "Ready"}
    assert keeper.hint("lab", "gpu") is None


async def test_namespace_that_stays_closed_is_not_asked_all_the_time(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    yard.closed.add("lab")
    keeper = begin()
    for _ in range(30):
        await farm.turn(keeper, 1)
    asked = [place for _, place in yard.asked if place.resource == resources.REPLICA_SETS]
    assert len(asked) == 2


async def test_what_is_refused_is_not_asked_for_all_the_time(
    begin: Begin, yard: Yard, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit = mock.AsyncMock(wraps=store.admit)
    monkeypatch.setattr(store, "admit", admit)
    pool = yard.pool("lab", "gpu", minReplicas=1)
    full = errors.ForbiddenError('403 secrets "x" is forbidden: exceeded quota: small')
    yard.fail("apply", resources.SECRETS, full, times=99)
    keeper = begin()
    for _ in range(30):
        await farm.turn(keeper)
    assert conditions(pool)["Stalled"] == "QuotaExceeded"
    assert admit.await_count == 4


async def test_set_that_a_deleted_pool_left_behind_is_named(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    keeper = begin()
    await farm.turn(keeper)
    [left] = yard.all(resources.REPLICA_SETS)
    owners = left["metadata"].pop("ownerReferences")
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert conditions(pool)["Stalled"] == "NameTaken"
    name = left["metadata"]["name"]
    assert f"`kubectl delete rs/{name} --namespace lab`" in str(pool["status"])
    left["metadata"]["ownerReferences"] = [{**owners[0], "uid": "of-its-namesake"}]
    farm.time.turn(20)
    await keeper.look()
    await keeper.settled()
    assert "Stalled" not in conditions(pool)


async def test_pool_that_cannot_even_be_read_stops_no_other(
    begin: Begin, yard: Yard, farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = yard.pool("lab", "bad", slots=7)
    good = yard.pool("lab", "good", minReplicas=1)
    parse = WorkerPool.parse

    def stumble(raw: Mapping[str, Any]) -> WorkerPool:
        if raw["metadata"]["name"] == "bad":
            raise RecursionError("too deep")
        return parse(raw)

    monkeypatch.setattr(WorkerPool, "parse", stumble)
    await farm.come_up(begin())
    assert conditions(good) == {"Ready": "Ready"}
    assert conditions(bad)["Stalled"] == "InvalidSpec"


async def test_same_trouble_is_logged_once(begin: Begin, yard: Yard, farm: Farm) -> None:
    yard.pool("open", "gpu", minReplicas=1)
    yard.fail("list", resources.POOLS, errors.ForbiddenError("403"), times=99, namespace="lab")
    yard.fail("status", resources.POOLS, errors.ForbiddenError("403"), times=99)
    keeper = begin(namespaces=["lab", "open"])
    with capture_logs() as logs:
        for _ in range(5):
            await farm.turn(keeper)
    events = [line["event"] for line in logs if line["log_level"] == "warning"]
    assert sorted(events) == ["pools cannot be listed", "status is not written"]


async def test_server_that_stays_away_is_logged_once(begin: Begin, yard: Yard) -> None:
    yard.fail("list", resources.POOLS, errors.UnreachableError("no answer"), times=4)
    rest = mock.patch("asyncio.sleep", side_effect=[None] * 8 + [asyncio.CancelledError])
    with capture_logs() as logs, rest, pytest.raises(asyncio.CancelledError):
        await begin().run()
    assert [line["event"] for line in logs] == ["pools cannot be looked at"]


async def test_nothing_is_said_of_pools_that_may_not_be_listed(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.fail("list", resources.POOLS, errors.ForbiddenError("403"), times=9, namespace="lab")
    good = yard.pool("open", "gpu", minReplicas=1)
    keeper = begin(namespaces=["lab", "open"])
    await farm.submit()
    await farm.turn(keeper)
    assert keeper.hint("lab", "gpu") is None
    assert good["status"]["desiredReplicas"] == 1


async def test_pools_are_not_forgotten_when_none_may_be_listed_any_more(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu")
    keeper = begin()
    await farm.submit()
    await farm.turn(keeper)
    yard.fail("list", resources.POOLS, errors.ForbiddenError("403"))
    with pytest.raises(errors.ForbiddenError):
        await keeper.look()
    assert keeper.hint("lab", "gpu") is None


async def test_namespace_that_is_being_deleted(begin: Begin, yard: Yard, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    refusal = errors.ForbiddenError("403 unable to create: because it is being terminated")
    yard.fail("create", resources.REPLICA_SETS, refusal, times=99)
    await farm.turn(begin())
    assert conditions(pool)["Stalled"] == "NamespaceTerminating"
    assert "rolebinding" not in str(pool["status"])


async def test_pool_with_nonsense_in_it_is_told_what_would_be_right(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    bad = yard.pool("lab", "bad", slots=0, imagee="x")
    good = yard.pool("lab", "good", minReplicas=1)
    keeper = begin()
    await farm.come_up(keeper)
    assert conditions(bad) == {"not Ready": "InvalidSpec", "Stalled": "InvalidSpec"}
    assert "did you mean image?" in str(bad["status"])
    assert conditions(good) == {"Ready": "Ready"}


async def test_pool_that_became_nonsense_keeps_its_workers(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=2)
    keeper = begin()
    await farm.come_up(keeper)
    yard.pool("lab", "gpu", slots="many")
    await farm.turn(keeper, IDLE_SECONDS)
    await farm.turn(keeper, IDLE_SECONDS)
    assert len(yard.pods()) == 2
    assert farm.ending() == []


async def test_template_that_the_server_refuses_is_told_of(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    refusal = errors.RefusedError("create: 422 volumeMounts[4].mountPath: must be unique")
    yard.fail("create", resources.REPLICA_SETS, refusal, times=99)
    await farm.turn(begin())
    assert conditions(pool)["Stalled"] == "InvalidSpec"
    assert "must be unique" in str(pool["status"])


async def test_pool_whose_namespace_gives_no_answer_delays_no_other(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("silent", "gpu", minReplicas=1)
    good = yard.pool("lab", "gpu", minReplicas=1)
    yard.silent.add("silent")
    keeper = begin()
    for _ in range(3):
        await keeper.look()
        # Others are done with when the loop has nothing else to do.
        while "Ready" not in str(good.get("status")):
            await asyncio.sleep(0)
        yard.work()
        await farm.start_all()
    waiting = [place for _, place in yard.asked if place.namespace == "silent"]
    assert len(waiting) == 1


async def test_pool_whose_namespace_gives_no_answer_is_let_go_in_time(
    begin: Begin, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workron_controller.pools.keeper._LONGEST_SECONDS", 0.01)
    yard.pool("silent", "gpu", minReplicas=1)
    yard.silent.add("silent")
    keeper = begin()
    for _ in range(2):
        await keeper.look()
        await keeper.settled()
    assert [place.namespace for _, place in yard.asked].count("silent") == 2


async def test_surprise_in_one_pool_is_logged_and_stops_no_other(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("bad", "gpu", minReplicas=1)
    good = yard.pool("lab", "gpu", minReplicas=1)
    yard.fail("list", resources.PODS, KeyError("surprise"), times=99, namespace="bad")
    keeper = begin()
    with capture_logs() as logs:
        await farm.come_up(keeper)
    assert conditions(good) == {"Ready": "Ready"}
    assert "pool cannot be tended" in {line["event"] for line in logs}


async def test_server_that_is_away_is_waited_for(begin: Begin, yard: Yard, farm: Farm) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    yard.fail("list", resources.POOLS, errors.UnreachableError("no answer"))
    keeper = begin()
    rest = mock.patch("asyncio.sleep", side_effect=[None, asyncio.CancelledError])
    with rest, pytest.raises(asyncio.CancelledError):
        await keeper.run()
    await farm.come_up(keeper)
    assert len(yard.pods()) == 1


async def test_server_that_goes_away_in_the_middle_is_told_of_when_it_is_back(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    yard.fail("list", resources.PODS, errors.BusyError("429", after=1))
    keeper = begin()
    await farm.turn(keeper)
    assert conditions(pool) == {"not Ready": "ApiUnavailable", "Reconciling": "ApiUnavailable"}
    await farm.come_up(keeper)
    assert conditions(pool) == {"Ready": "Ready"}


async def test_database_that_is_away_is_told_of_and_changes_nothing(
    begin: Begin, yard: Yard, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=2)
    keeper = begin()
    await farm.come_up(keeper)
    await farm.submit(3)
    await farm.take(yard.pods()[0])
    await farm.turn(keeper, 10)
    await farm.turn(keeper)
    before = dict(pool["status"])
    away = mock.AsyncMock(side_effect=store_errors.StoreUnreachableError("no answer"))
    with monkeypatch.context() as patch:
        patch.setattr(store, "staff", away)
        for pod in yard.pods():
            yards.unready(pod)
        await farm.turn(keeper, IDLE_SECONDS)
    assert conditions(pool)["not Ready"] == "DatabaseUnavailable"
    numbers = ("desiredReplicas", "readyReplicas", "busy", "queued")
    assert [pool["status"][name] for name in numbers] == [2, 2, 1, 2]
    assert pool["status"].keys() == before.keys()
    yard.pool("lab", "gpu", minReplicas=2)
    for pod in yard.pods():
        yards.place_on(pod)
    await farm.turn(keeper)
    assert conditions(pool) == {"Ready": "Ready"}
    assert farm.ending() == []


async def test_new_leader_whose_database_is_away_says_so(
    begin: Begin, yard: Yard, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=2)
    away = mock.AsyncMock(side_effect=store_errors.StoreUnreachableError("no answer"))
    monkeypatch.setattr(store, "staff", away)
    await farm.turn(begin())
    assert "DatabaseUnavailable" in conditions(pool).values()


async def test_database_that_makes_no_roles_is_told_with_what_would_let_it(
    begin: Begin, yard: Yard, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    denied = store_errors.StoreRightsError("let a superuser run `ALTER ROLE me CREATEROLE`")
    monkeypatch.setattr(store, "admit", mock.AsyncMock(side_effect=denied))
    await farm.turn(begin())
    assert conditions(pool) == {"not Ready": "DatabaseRights", "Stalled": "DatabaseRights"}
    assert "ALTER ROLE me CREATEROLE" in str(pool["status"])
    assert yard.pods() == []


async def test_status_that_cannot_be_written_is_written_the_next_time(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    yard.fail("status", resources.POOLS, errors.ConflictError("409"))
    keeper = begin()
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert "Starting" in conditions(pool).values()


async def _begin_to_drain(yard: Yard, farm: Farm, keeper: Keeper) -> yards.Raw:
    """Have three workers, and the API server fail when one is to go; give the one that is busy."""
    yard.pool("lab", "gpu", replicas=3, slots=1)
    await farm.submit()
    await farm.come_up(keeper)
    _, busy, _ = yard.pods()
    await farm.take(busy)
    yard.pool("lab", "gpu", replicas=2, slots=1)
    yard.fail("patch", resources.REPLICA_SETS, errors.UnreachableError("no answer"))
    await farm.turn(keeper)
    return busy


async def test_leader_that_comes_in_the_middle_of_a_drain_ends_it(
    begin: Begin, yard: Yard, farm: Farm, store: Store
) -> None:
    busy = await _begin_to_drain(yard, farm, begin())
    assert [row.is_draining for row in await store.staff()].count(True) == 1
    assert yard.replicas() == [3]
    successor = begin()
    for _ in range(3):
        await farm.turn(successor)
    assert yard.replicas() == [2]
    [gone] = farm.ending()
    assert gone is not busy
    assert [row.is_draining for row in await store.staff()].count(True) == 1


async def test_two_leaders_at_once_end_no_more_than_one_does(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    late = begin()
    busy = await _begin_to_drain(yard, farm, late)
    successor = begin()
    for _ in range(3):
        await farm.turn(successor)
        await farm.turn(late)
    assert yard.replicas() == [2]
    assert len(farm.ending()) == 1
    assert farm.ending() != [busy]

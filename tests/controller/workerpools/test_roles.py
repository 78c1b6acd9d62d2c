"""Pools on a real PostgreSQL: what their Secrets let in, and what one pool can do to another."""

import base64
import contextlib
import random
import uuid
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.controller.manual_clock import ManualClock
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from tests.store.postgres import roles
from workron.core import errors
from workron.store.postgres import schema
from workron.store.postgres.store import open_postgres, open_worker
from workron.store.types import Registration
from workron_controller.kube import resources
from workron_controller.kube.client import RetryingCalls
from workron_controller.workerpools.autoscaler import ConnectionBudget
from workron_controller.workerpools.config import PoolConfig, PoolDependencies
from workron_controller.workerpools.controller import WorkerPoolController

_MADE = "SELECT role FROM workron.pool WHERE role IS NOT NULL"


@pytest.fixture
async def controller(
    fresh_database: str, yard: FakeCluster, time: ManualClock
) -> AsyncIterator[WorkerPoolController]:
    store = await open_postgres(fresh_database, rng=random.Random())
    retrying = RetryingCalls(time, random.Random(), seconds=0)
    settings = PoolConfig("ours:1", namespace="workron")
    yield WorkerPoolController(
        PoolDependencies(
            yard, retrying, store, ConnectionBudget(), settings, (), time, lambda _: None
        )
    )
    await store.close()
    admin = await asyncpg.connect(fresh_database)
    for row in await admin.fetch(_MADE):
        with contextlib.suppress(asyncpg.UndefinedObjectError):
            await admin.execute(f'DROP OWNED BY "{row[0]}" CASCADE; DROP ROLE "{row[0]}"')
    await admin.close()


def _secret(yard: FakeCluster, pool: str) -> tuple[str, str]:
    data = yard.objects[resources.SECRETS, "lab", f"workron-pool-{pool}"]["data"]
    url, token = (base64.b64decode(data[key]).decode() for key in ("store", "token"))
    return url, token


async def _look(controller: WorkerPoolController) -> None:
    await controller.reconcile_all()
    await controller.wait_idle()


async def test_secret_lets_a_worker_into_its_pool_and_into_no_other(
    controller: WorkerPoolController, yard: FakeCluster
) -> None:
    for name in ("a", "b"):
        yard.pool("lab", name, minReplicas=1)
    await _look(controller)
    (url, token), (_, others) = _secret(yard, "a"), _secret(yard, "b")
    worker = await open_worker(url, rng=random.Random())
    session = await worker.register(Registration(token, "pod", uuid.uuid4(), slots=4))
    assert (session.namespace, session.pool) == ("lab", "a")
    with pytest.raises(errors.TokenError):
        await worker.register(Registration(others, "pod", uuid.uuid4(), slots=4))
    await worker.close()


async def test_pool_can_do_nothing_to_another_one(
    controller: WorkerPoolController, yard: FakeCluster
) -> None:
    for name in ("a", "b"):
        yard.pool("lab", name, minReplicas=1)
    await _look(controller)
    one, other = [await asyncpg.connect(_secret(yard, name)[0]) for name in ("a", "b")]
    them = await other.fetchval("SELECT current_user")
    tried = [
        f"SELECT pg_terminate_backend({other.get_server_pid()})",
        f"SELECT pg_cancel_backend({other.get_server_pid()})",
        f"ALTER ROLE \"{them}\" PASSWORD 'mine'",
        f'ALTER ROLE "{them}" SET statement_timeout = 1',
        f'SET ROLE "{them}"',
        "UPDATE workron.pool SET role = NULL",
    ]
    assert await roles.allowed(one, tried) == []
    seen = await one.fetchval(
        "SELECT query FROM pg_stat_activity WHERE pid = $1", other.get_server_pid()
    )
    assert "current_user" not in (seen or "")
    await one.close()
    await other.close()


async def test_operator_that_may_make_no_roles_is_told_in_the_pool(
    empty_database: str, yard: FakeCluster, time: ManualClock
) -> None:
    async with roles.owner_of(empty_database) as owner:
        await schema.migrate(owner.dsn)
        store = await open_postgres(owner.dsn, rng=random.Random())
        retrying = RetryingCalls(time, random.Random(), seconds=0)
        settings = PoolConfig("ours:1")
        deps = PoolDependencies(
            yard, retrying, store, ConnectionBudget(), settings, (), time, lambda _: None
        )
        controller = WorkerPoolController(deps)
        pool = yard.pool("lab", "gpu", minReplicas=1)
        await _look(controller)
        assert conditions(pool)["Stalled"] == "DatabasePermissionDenied"
        assert f"`ALTER ROLE {owner.name} CREATEROLE`" in str(pool["status"])
        await store.close()

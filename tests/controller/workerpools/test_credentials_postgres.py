"""Credentials of pools on a real PostgreSQL server."""

import base64
import contextlib
import random
import uuid
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.controller.manual_clock import ManualClock
from tests.controller.workerpools.conftest import PoolHarness
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from tests.store.postgres import roles
from workron.core import errors
from workron.store.postgres import schema
from workron.store.postgres.store import open_postgres, open_worker
from workron.store.types import Registration
from workron_controller.kube import resources
from workron_controller.workerpools.controller import WorkerPoolController

_SELECT_ROLES = "SELECT role FROM workron.pool WHERE role IS NOT NULL"


@pytest.fixture
async def controller(
    fresh_database: str, cluster: FakeCluster, time: ManualClock
) -> AsyncIterator[WorkerPoolController]:
    store = await open_postgres(fresh_database, rng=random.Random())
    yield PoolHarness(cluster, store, time).new_controller()
    await store.close()
    admin = await asyncpg.connect(fresh_database)
    for row in await admin.fetch(_SELECT_ROLES):
        with contextlib.suppress(asyncpg.UndefinedObjectError):
            await admin.execute(f'DROP OWNED BY "{row[0]}" CASCADE; DROP ROLE "{row[0]}"')
    await admin.close()


def _secret(cluster: FakeCluster, pool: str) -> tuple[str, str]:
    data = cluster.objects[resources.SECRETS, "lab", f"workron-pool-{pool}"]["data"]
    url, token = (base64.b64decode(data[key]).decode() for key in ("store", "token"))
    return url, token


async def _reconcile(controller: WorkerPoolController) -> None:
    await controller.reconcile_all()
    await controller.wait_idle()


async def test_worker_can_register_in_its_own_pool_only(
    controller: WorkerPoolController, cluster: FakeCluster
) -> None:
    for name in ("a", "b"):
        cluster.apply_pool("lab", name, minReplicas=1)
    await _reconcile(controller)
    (url, token), (_, other_token) = _secret(cluster, "a"), _secret(cluster, "b")
    worker = await open_worker(url, rng=random.Random())
    session = await worker.register(Registration(token, "pod", uuid.uuid4(), slots=4))
    assert (session.namespace, session.pool) == ("lab", "a")
    with pytest.raises(errors.TokenError):
        await worker.register(Registration(other_token, "pod", uuid.uuid4(), slots=4))
    await worker.close()


async def test_role_of_a_pool_has_no_privileges_on_another_pool(
    controller: WorkerPoolController, cluster: FakeCluster
) -> None:
    for name in ("a", "b"):
        cluster.apply_pool("lab", name, minReplicas=1)
    await _reconcile(controller)
    one, other = [await asyncpg.connect(_secret(cluster, name)[0]) for name in ("a", "b")]
    other_role = await other.fetchval("SELECT current_user")
    statements = [
        f"SELECT pg_terminate_backend({other.get_server_pid()})",
        f"SELECT pg_cancel_backend({other.get_server_pid()})",
        f"ALTER ROLE \"{other_role}\" PASSWORD 'mine'",
        f'ALTER ROLE "{other_role}" SET statement_timeout = 1',
        f'SET ROLE "{other_role}"',
        "UPDATE workron.pool SET role = NULL",
    ]
    assert await roles.allowed(one, statements) == []
    query = await one.fetchval(
        "SELECT query FROM pg_stat_activity WHERE pid = $1", other.get_server_pid()
    )
    assert "current_user" not in (query or "")
    await one.close()
    await other.close()


async def test_pool_is_stalled_when_the_controller_cannot_create_roles(
    empty_database: str, cluster: FakeCluster, time: ManualClock
) -> None:
    async with roles.owner_of(empty_database) as owner:
        await schema.migrate(owner.dsn)
        store = await open_postgres(owner.dsn, rng=random.Random())
        controller = PoolHarness(cluster, store, time).new_controller()
        pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
        await _reconcile(controller)
        assert conditions(pool)["Stalled"] == "DatabasePermissionDenied"
        assert f"`ALTER ROLE {owner.name} CREATEROLE`" in str(pool["status"])
        await store.close()

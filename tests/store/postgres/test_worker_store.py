"""The store of a worker: with a role of few rights, and on few connections."""

import asyncio
import random

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.databases import FakeClock
from tests.store.behaviour.worker import mint, mint_boot, report_on
from tests.store.postgres import roles
from tests.store.postgres.roles import Role
from tests.store.postgres.stage import Stage
from workron.core import errors
from workron.store import connect
from workron.store.api import WorkerStore
from workron.store.types import Registration

_OPEN = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1"


async def _open(dsn: str) -> WorkerStore:
    return await connect.connect_worker(dsn, clock=FakeClock(), rng=random.Random())


async def test_role_runs_a_job_with_the_worker_store(stage: Stage, role: Role) -> None:
    run = await stage.submit(plans.job())
    store = await _open(role.dsn)
    key = (await store.register(Registration(stage.token, "one", mint_boot(), 1))).key
    await store.heartbeat(key)
    (claimed,) = await store.claim(key, mint())
    await store.complete(key, [report_on(claimed)])
    await store.deregister(key)
    await store.close()
    assert await stage.states(run) == {"job": "Succeeded"}


async def test_worker_store_is_notified_of_jobs(stage: Stage, role: Role) -> None:
    store = await _open(role.dsn)
    other = await connect.connect(stage.dsn, clock=FakeClock(), rng=random.Random())
    await store.wait_for_work(0)
    await other.submit([plans.job()])
    await store.wait_for_work(600)
    await store.close()
    await other.close()


async def test_worker_store_uses_four_connections_when_many_calls_run_at_once(
    stage: Stage, role: Role
) -> None:
    store = await _open(role.dsn)
    key = (await store.register(Registration(stage.token, "one", mint_boot(), 100))).key
    await asyncio.gather(*(store.claim(key, mint()) for _ in range(20)), store.heartbeat(key))
    assert await stage.sql.fetchval(_OPEN, role.name) <= 4
    await store.close()


async def test_open_names_the_grant_when_the_role_has_none(stage: Stage) -> None:
    async with roles.unprivileged_role_in(stage.dsn) as unprivileged:
        with pytest.raises(errors.PermissionDeniedError) as refusal:
            await _open(unprivileged.dsn)
    assert f"SELECT workron.grant_worker('{unprivileged.name}')" in str(refusal.value)
    assert "append_output, claim, complete, deregister, heartbeat, register, release" in str(
        refusal.value
    )


async def test_call_names_the_grant_when_the_role_lost_its_rights(stage: Stage, role: Role) -> None:
    store = await _open(role.dsn)
    await stage.sql.execute(f"DROP OWNED BY {role.name}")
    with pytest.raises(errors.PermissionDeniedError) as refusal:
        await store.register(Registration(stage.token, "one", mint_boot(), 1))
    await store.close()
    assert f"SELECT workron.grant_worker('{role.name}')" in str(refusal.value)
    assert "permission denied" in str(refusal.value)


async def test_role_of_a_worker_cannot_open_the_whole_store(role: Role) -> None:
    with pytest.raises(errors.PermissionDeniedError, match="everything else needs that owner"):
        await connect.connect(role.dsn, clock=FakeClock(), rng=random.Random())


async def test_open_fails_when_the_schema_is_missing(empty_database: str) -> None:
    async with roles.unprivileged_role_in(empty_database) as unprivileged:
        with pytest.raises(errors.SchemaMissingError, match="create it with `workron migrate"):
            await _open(unprivileged.dsn)


async def test_open_fails_when_a_called_function_is_missing(stage: Stage, role: Role) -> None:
    await stage.sql.execute("ALTER FUNCTION workron.deregister(uuid) RENAME TO leave_then")
    with pytest.raises(errors.SchemaError, match=r"lacks deregister\(uuid\) returns void"):
        await _open(role.dsn)


async def test_worker_store_opens_when_only_other_functions_are_missing(
    stage: Stage, role: Role
) -> None:
    await stage.sql.execute("DROP FUNCTION workron.audit(integer, bigint)")
    store = await _open(role.dsn)
    await store.close()


async def test_open_names_the_database_when_it_does_not_exist(stage: Stage, role: Role) -> None:
    await stage.sql.execute(f"ALTER ROLE {role.name} NOLOGIN")
    with pytest.raises(errors.StoreUnreachableError, match="not permitted to log in") as refusal:
        await _open(role.dsn)
    assert role.dsn not in str(refusal.value)

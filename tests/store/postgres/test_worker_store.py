"""A database as a worker opens it: with a role of few rights, and on few connections."""

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


async def test_role_of_a_worker_runs_a_job_through_its_door(stage: Stage, role: Role) -> None:
    run = await stage.submit(plans.job())
    door = await _open(role.dsn)
    key = (await door.register(Registration(stage.token, "one", mint_boot(), 1))).key
    await door.heartbeat(key)
    (claimed,) = await door.claim(key, mint())
    await door.complete(key, [report_on(claimed)])
    await door.deregister(key)
    await door.close()
    assert await stage.stands(run) == {"job": "Succeeded"}


async def test_worker_hears_of_work_through_its_door(stage: Stage, role: Role) -> None:
    door = await _open(role.dsn)
    other = await connect.connect(stage.dsn, clock=FakeClock(), rng=random.Random())
    await door.wait_for_work(0)
    await other.submit([plans.job()])
    await door.wait_for_work(600)
    await door.close()
    await other.close()


async def test_worker_needs_four_connections_however_much_it_asks_at_once(
    stage: Stage, role: Role
) -> None:
    door = await _open(role.dsn)
    key = (await door.register(Registration(stage.token, "one", mint_boot(), 100))).key
    await asyncio.gather(*(door.claim(key, mint()) for _ in range(20)), door.heartbeat(key))
    assert await stage.sql.fetchval(_OPEN, role.name) <= 4
    await door.close()


async def test_role_that_was_granted_nothing_is_told_what_to_grant(stage: Stage) -> None:
    async with roles.nobody_in(stage.dsn) as nobody:
        with pytest.raises(errors.PermissionDeniedError) as refusal:
            await _open(nobody.dsn)
    assert f"SELECT workron.grant_worker('{nobody.name}')" in str(refusal.value)
    assert "append_output, claim, complete, deregister, heartbeat, register, release" in str(
        refusal.value
    )


async def test_role_that_loses_its_rights_later_is_told_what_to_grant(
    stage: Stage, role: Role
) -> None:
    door = await _open(role.dsn)
    await stage.sql.execute(f"DROP OWNED BY {role.name}")
    with pytest.raises(errors.PermissionDeniedError) as refusal:
        await door.register(Registration(stage.token, "one", mint_boot(), 1))
    await door.close()
    assert f"SELECT workron.grant_worker('{role.name}')" in str(refusal.value)
    assert "permission denied" in str(refusal.value)


async def test_role_of_a_worker_opens_no_other_door(role: Role) -> None:
    with pytest.raises(errors.PermissionDeniedError, match="everything else needs that owner"):
        await connect.connect(role.dsn, clock=FakeClock(), rng=random.Random())


async def test_database_without_a_schema_is_told_of(empty_database: str) -> None:
    async with roles.nobody_in(empty_database) as nobody:
        with pytest.raises(errors.SchemaMissingError, match="create it with `workron migrate"):
            await _open(nobody.dsn)


async def test_database_without_a_verb_that_is_called_is_told_of(stage: Stage, role: Role) -> None:
    await stage.sql.execute("ALTER FUNCTION workron.deregister(uuid) RENAME TO leave_then")
    with pytest.raises(errors.SchemaError, match=r"lacks deregister\(uuid\) returns void"):
        await _open(role.dsn)


async def test_what_only_others_call_may_be_missing(stage: Stage, role: Role) -> None:
    await stage.sql.execute("DROP FUNCTION workron.audit(integer, bigint)")
    door = await _open(role.dsn)
    await door.close()


async def test_database_that_is_not_there_is_named(stage: Stage, role: Role) -> None:
    await stage.sql.execute(f"ALTER ROLE {role.name} NOLOGIN")
    with pytest.raises(errors.StoreUnreachableError, match="not permitted to log in") as refusal:
        await _open(role.dsn)
    assert role.dsn not in str(refusal.value)

"""What a pool is let in by: a role of its own, and what that can do and not do."""

import base64
import contextlib
import random
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import mint, report_on
from tests.store.postgres import roles
from tests.store.postgres.roles import Role
from tests.store.postgres.stage import Stage
from workron.core import errors
from workron.store.postgres import schema
from workron.store.postgres.roles import scram_verifier, url_with_role
from workron.store.postgres.store import open_postgres, open_worker
from workron.store.types import PoolGrant, PoolLogin

_WORD = "open sesame"
_ATTRIBUTES = """
    SELECT rolcanlogin, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
           rolconnlimit FROM pg_roles WHERE rolname = $1"""
_KEPT = "SELECT rolpassword FROM pg_authid WHERE rolname = $1"
_BOUND = "SELECT role FROM workron.pool WHERE namespace = $1 AND name = $2"

Admit = Callable[..., Any]


def admission(pool: str = "own", token: str = _WORD, **about: Any) -> PoolGrant:
    asked: dict[str, Any] = {
        "lease_seconds": 10.0,
        "password": secrets.token_hex(16),
        "connections": 5,
    }
    return PoolGrant(plans.NAMESPACE, pool, token, **asked | about)


def role_in(admitted: PoolLogin) -> Role:
    return Role(admitted.url.partition("://")[2].partition(":")[0], admitted.url)


def _salt_in(kept: str) -> bytes:
    return base64.b64decode(kept.split("$")[1].partition(":")[2])


@pytest.fixture
async def made(stage: Stage) -> AsyncIterator[list[Role]]:
    """Those that a test has made, to be taken away: roles are the whole server's."""
    some: list[Role] = []
    yield some
    for name in {role.name for role in some}:
        with contextlib.suppress(asyncpg.UndefinedObjectError):
            await stage.sql.execute(f'DROP OWNED BY "{name}" CASCADE; DROP ROLE "{name}"')


@pytest.fixture
def admit(stage: Stage, made: list[Role]) -> Admit:
    async def admit(pool: str = "own", token: str = _WORD, **about: Any) -> Role:
        admitted = await stage.watcher.grant_pool(admission(pool, token, **about))
        made.append(role_in(admitted))
        return made[-1]

    return admit


async def test_worker_of_a_pool_opens_the_url_and_runs_a_job(stage: Stage, admit: Admit) -> None:
    role = await admit()
    run = await stage.submit(plans.job(pool="own"))
    store = await open_worker(role.dsn, rng=random.Random())
    key = (await roles.register(store, _WORD)).key
    (claimed,) = await store.claim(key, mint())
    await store.complete(key, [report_on(claimed)])
    await store.close()
    assert await stage.stands(run) == {"job": "Succeeded"}


async def test_role_can_log_in_so_often_and_has_no_other_power(stage: Stage, admit: Admit) -> None:
    role = await admit(connections=7)
    [row] = await stage.sql.fetch(_ATTRIBUTES, role.name)
    assert tuple(row) == (True, False, False, False, False, False, 7)
    assert await stage.sql.fetchval("SELECT workron.has_worker_rights($1)", role.name)


async def test_role_can_look_at_no_table_and_call_nothing_but_its_verbs(
    stage: Stage, admit: Admit
) -> None:
    role = await admit()
    connection = await role.connect()
    tried = ["SELECT 1 FROM workron.job", "SELECT 1 FROM workron.token", "TABLE workron.pool"]
    tried += [
        "SELECT workron.grant_pool('n', 'p', 't', 1, 'x', 1)",
        "CREATE TEMPORARY TABLE mine ()",
    ]
    tried += [f"ALTER ROLE {await stage.sql.fetchval('SELECT current_user')} PASSWORD 'mine'"]
    assert await roles.allowed(connection, tried) == []
    await connection.close()


async def test_role_enters_no_other_pool_with_the_token_of_that(admit: Admit) -> None:
    own, other = await admit("own", "mine"), await admit("other", "yours")
    assert own.name != other.name
    async with own.door() as door:
        with pytest.raises(errors.TokenError):
            await roles.register(door, "yours")
        assert (await roles.register(door, "mine")).pool == "own"


async def test_pool_that_is_admitted_again_has_the_same_role_with_the_new_password(
    stage: Stage, admit: Admit
) -> None:
    old, new = [await admit(password=one, connections=9) for one in ("old", "new")]
    assert new.name == old.name
    kept = await stage.sql.fetchval(_KEPT, new.name)
    assert [scram_verifier(one, _salt_in(kept)) == kept for one in ("old", "new")] == [False, True]
    [row] = await stage.sql.fetch(_ATTRIBUTES, new.name)
    assert row["rolconnlimit"] == 9


async def test_server_is_handed_what_it_would_make_of_the_password_itself(stage: Stage) -> None:
    name = f"workron_test_{secrets.token_hex(6)}"
    await stage.sql.execute("SET password_encryption = 'scram-sha-256'")
    await stage.sql.execute(f"CREATE ROLE {name} PASSWORD 'secret'")
    kept = await stage.sql.fetchval(_KEPT, name)
    await stage.sql.execute(f"DROP ROLE {name}")
    assert scram_verifier("secret", _salt_in(kept)) == kept
    assert "secret" not in scram_verifier("secret") != kept


async def test_pool_without_a_password_is_open_to_every_role_that_can_run_jobs(
    stage: Stage, admit: Admit, role: Role
) -> None:
    await admit()
    assert await stage.sql.fetchval(_BOUND, plans.NAMESPACE, "own") is not None
    admitted = await stage.watcher.grant_pool(admission(password=None))
    assert admitted.url == stage.dsn
    async with role.door() as door:
        await roles.register(door, _WORD)


async def test_connections_are_those_that_are_nobodys_in_particular(stage: Stage) -> None:
    admitted = await stage.watcher.grant_pool(admission(password=None))
    most = await stage.sql.fetchval("SELECT current_setting('max_connections')::integer")
    assert admitted.connections is not None
    assert most - 20 < admitted.connections < most


async def test_long_names_that_begin_alike_have_roles_of_their_own(admit: Admit) -> None:
    one, other = await admit(f"{'x' * 50}-a"), await admit(f"{'x' * 50}-b")
    assert one.name != other.name
    assert max(len(one.name), len(other.name)) <= 63


async def test_who_may_make_no_roles_is_told_what_would_let_it(empty_database: str) -> None:
    async with roles.owner_of(empty_database) as owner:
        await schema.migrate(owner.dsn)
        store = await open_postgres(owner.dsn, rng=random.Random())
        with pytest.raises(
            errors.PermissionDeniedError, match=f"`ALTER ROLE {owner.name} CREATEROLE`"
        ):
            await store.grant_pool(admission())
        await store.close()


async def test_who_cannot_shut_all_doors_is_told_how_and_leaves_no_role_behind(
    empty_database: str,
) -> None:
    async with roles.owner_of(empty_database) as owner:
        await schema.migrate(owner.dsn)
        admin = await asyncpg.connect(empty_database)
        await admin.execute(f"ALTER ROLE {owner.name} CREATEROLE")
        store = await open_postgres(owner.dsn, rng=random.Random())
        with pytest.raises(errors.PermissionDeniedError, match="REVOKE EXECUTE ON FUNCTION"):
            await store.grant_pool(admission("unready"))
        left = await admin.fetch("SELECT 1 FROM pg_roles WHERE rolname LIKE 'workron%unready%'")
        assert left == []
        await store.close()
        await admin.close()


def test_url_of_a_role_has_nothing_left_of_whose_it_was() -> None:
    url = "postgresql://me:mine@db:5432/jobs?sslmode=require&password=mine&user=me"
    said = url_with_role(url, "pool", "a/b@c")
    assert said == "postgresql://pool:a%2Fb%40c@db:5432/jobs?sslmode=require"


def test_url_keeps_the_folder_of_a_socket() -> None:
    said = url_with_role("postgresql://me@/jobs?host=/run/postgresql", "pool", "x")
    assert said == "postgresql://pool:x@/jobs?host=/run/postgresql"


async def test_role_of_a_pool_that_is_dismissed_is_gone(stage: Stage, admit: Admit) -> None:
    role, other = await admit(), await admit("other")
    assert await stage.watcher.revoke_pool(plans.NAMESPACE, "own")
    assert await stage.sql.fetch(_ATTRIBUTES, role.name) == []
    assert await stage.sql.fetchval(_BOUND, plans.NAMESPACE, "own") is None
    assert await stage.sql.fetchval("SELECT workron.has_worker_rights($1)", other.name)
    assert (await admit()).name == role.name


async def test_role_that_has_something_can_log_in_no_more_and_the_rest_is_said_once(
    stage: Stage, admit: Admit
) -> None:
    role = await admit()
    await stage.sql.execute(f'GRANT SELECT ON workron.meta TO "{role.name}"')
    with pytest.raises(errors.PermissionDeniedError, match=f"DROP OWNED BY {role.name}; DROP ROLE"):
        await stage.watcher.revoke_pool(plans.NAMESPACE, "own")
    [left] = await stage.sql.fetch(_ATTRIBUTES, role.name)
    assert left["rolcanlogin"] is False
    assert not await stage.sql.fetchval("SELECT workron.has_worker_rights($1)", role.name)
    assert await stage.watcher.granted_pools() == set()


async def test_role_that_another_made_loses_all_that_is_ours_to_take(
    empty_database: str, made: list[Role]
) -> None:
    async with roles.owner_of(empty_database) as owner:
        await schema.migrate(owner.dsn)
        admin, store = [
            await open_postgres(dsn, rng=random.Random()) for dsn in (empty_database, owner.dsn)
        ]
        made.append(role_in(await admin.grant_pool(admission())))
        with pytest.raises(errors.PermissionDeniedError, match="as a superuser, run"):
            await store.revoke_pool(plans.NAMESPACE, "own")
        assert await store.granted_pools() == set()
        connection = await made[0].connect()
        said = ["SELECT workron.deregister(gen_random_uuid())"]
        assert await roles.allowed(connection, said) == []
        await connection.execute("SELECT 1")
        await connection.close()
        await store.close()
        await admin.close()


async def test_server_that_cannot_take_one_more_now_lets_a_pool_in_all_the_same(
    admit: Admit,
) -> None:
    role = await admit(connections=0)
    with pytest.raises(asyncpg.TooManyConnectionsError):
        await role.connect()

"""The role of a pool: what it can do, and what not."""

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
    """Return the roles that a test creates, and drop them: roles belong to the whole server."""
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


async def test_worker_runs_a_job_when_it_opens_the_url_of_its_pool(
    stage: Stage, admit: Admit
) -> None:
    role = await admit()
    run = await stage.submit(plans.job(pool="own"))
    store = await open_worker(role.dsn, rng=random.Random())
    key = (await roles.register(store, _WORD)).key
    (claimed,) = await store.claim(key, mint())
    await store.complete(key, [report_on(claimed)])
    await store.close()
    assert await stage.states(run) == {"job": "Succeeded"}


async def test_role_has_a_connection_limit_and_no_other_power(stage: Stage, admit: Admit) -> None:
    role = await admit(connections=7)
    [row] = await stage.sql.fetch(_ATTRIBUTES, role.name)
    assert tuple(row) == (True, False, False, False, False, False, 7)
    assert await stage.sql.fetchval("SELECT workron.has_worker_rights($1)", role.name)


async def test_role_can_read_no_table_and_call_only_worker_functions(
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


async def test_role_cannot_register_in_another_pool_when_it_has_its_token(admit: Admit) -> None:
    own, other = await admit("own", "mine"), await admit("other", "yours")
    assert own.name != other.name
    async with own.open_worker_store() as store:
        with pytest.raises(errors.TokenError):
            await roles.register(store, "yours")
        assert (await roles.register(store, "mine")).pool == "own"


async def test_role_gets_the_new_password_when_its_pool_is_granted_again(
    stage: Stage, admit: Admit
) -> None:
    old, new = [await admit(password=one, connections=9) for one in ("old", "new")]
    assert new.name == old.name
    kept = await stage.sql.fetchval(_KEPT, new.name)
    assert [scram_verifier(one, _salt_in(kept)) == kept for one in ("old", "new")] == [False, True]
    [row] = await stage.sql.fetch(_ATTRIBUTES, new.name)
    assert row["rolconnlimit"] == 9


async def test_verifier_is_the_one_that_the_server_would_make(stage: Stage) -> None:
    name = f"workron_test_{secrets.token_hex(6)}"
    await stage.sql.execute("SET password_encryption = 'scram-sha-256'")
    await stage.sql.execute(f"CREATE ROLE {name} PASSWORD 'secret'")
    kept = await stage.sql.fetchval(_KEPT, name)
    await stage.sql.execute(f"DROP ROLE {name}")
    assert scram_verifier("secret", _salt_in(kept)) == kept
    assert "secret" not in scram_verifier("secret") != kept


async def test_every_worker_role_can_register_when_the_pool_has_no_password(
    stage: Stage, admit: Admit, role: Role
) -> None:
    await admit()
    assert await stage.sql.fetchval(_BOUND, plans.NAMESPACE, "own") is not None
    admitted = await stage.watcher.grant_pool(admission(password=None))
    assert admitted.url == stage.dsn
    async with role.open_worker_store() as store:
        await roles.register(store, _WORD)


async def test_connections_are_those_that_no_role_reserves(stage: Stage) -> None:
    admitted = await stage.watcher.grant_pool(admission(password=None))
    most = await stage.sql.fetchval("SELECT current_setting('max_connections')::integer")
    assert admitted.connections is not None
    assert most - 20 < admitted.connections < most


async def test_pools_have_different_roles_when_their_long_names_begin_alike(admit: Admit) -> None:
    one, other = await admit(f"{'x' * 50}-a"), await admit(f"{'x' * 50}-b")
    assert one.name != other.name
    assert max(len(one.name), len(other.name)) <= 63


async def test_grant_names_the_missing_right_when_the_owner_cannot_create_roles(
    empty_database: str,
) -> None:
    async with roles.owner_of(empty_database) as owner:
        await schema.migrate(owner.dsn)
        store = await open_postgres(owner.dsn, rng=random.Random())
        with pytest.raises(
            errors.PermissionDeniedError, match=f"`ALTER ROLE {owner.name} CREATEROLE`"
        ):
            await store.grant_pool(admission())
        await store.close()


async def test_grant_creates_no_role_when_excess_rights_cannot_be_revoked(
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


def test_url_of_a_role_has_no_parameter_of_the_owner() -> None:
    url = "postgresql://me:mine@db:5432/jobs?sslmode=require&password=mine&user=me"
    said = url_with_role(url, "pool", "a/b@c")
    assert said == "postgresql://pool:a%2Fb%40c@db:5432/jobs?sslmode=require"


def test_url_keeps_the_folder_of_a_socket() -> None:
    said = url_with_role("postgresql://me@/jobs?host=/run/postgresql", "pool", "x")
    assert said == "postgresql://pool:x@/jobs?host=/run/postgresql"


async def test_role_is_dropped_when_its_pool_is_revoked(stage: Stage, admit: Admit) -> None:
    role, other = await admit(), await admit("other")
    assert await stage.watcher.revoke_pool(plans.NAMESPACE, "own")
    assert await stage.sql.fetch(_ATTRIBUTES, role.name) == []
    assert await stage.sql.fetchval(_BOUND, plans.NAMESPACE, "own") is None
    assert await stage.sql.fetchval("SELECT workron.has_worker_rights($1)", other.name)
    assert (await admit()).name == role.name


async def test_role_is_disabled_when_it_owns_objects(stage: Stage, admit: Admit) -> None:
    role = await admit()
    await stage.sql.execute(f'GRANT SELECT ON workron.meta TO "{role.name}"')
    with pytest.raises(errors.PermissionDeniedError, match=f"DROP OWNED BY {role.name}; DROP ROLE"):
        await stage.watcher.revoke_pool(plans.NAMESPACE, "own")
    [left] = await stage.sql.fetch(_ATTRIBUTES, role.name)
    assert left["rolcanlogin"] is False
    assert not await stage.sql.fetchval("SELECT workron.has_worker_rights($1)", role.name)
    assert await stage.watcher.granted_pools() == set()


async def test_role_loses_our_rights_when_another_owner_created_it(
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


async def test_pool_is_granted_when_the_server_has_no_free_connection(
    admit: Admit,
) -> None:
    role = await admit(connections=0)
    with pytest.raises(asyncpg.TooManyConnectionsError):
        await role.connect()

"""A database that was restored on another server: a migration revokes excess rights again.

It also renews the transactions of ready jobs, which the new server may number from lower on.
"""

import asyncio
import random
import subprocess
from collections.abc import Iterator
from urllib import parse

import asyncpg
import pytest

from tests import postgres_server
from tests.store.behaviour import plans
from tests.store.postgres import roles
from tests.store.postgres.stage import Stage
from workron.store.postgres import schema
from workron.store.postgres.store import open_postgres, open_worker
from workron.store.types import PoolGrant

_ADMISSION = PoolGrant(plans.NAMESPACE, "own", "token", 10.0, "secret", connections=9)
_IS_OPEN = """
    SELECT r.rolname::text FROM pg_roles r CROSS JOIN workron.list_excess_rights(r.rolname)
    WHERE r.rolname IN ('hand', workron.pool_role_name($1, 'own'))"""
_PUBLIC = """
    SELECT p.proname::text FROM pg_proc p
    CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    WHERE p.pronamespace = 'workron'::regnamespace AND a.grantee = 0"""


@pytest.fixture(scope="module")
def dumped() -> Iterator[tuple[str, bytes, bytes]]:
    """Return an empty server, and dumps of the roles and the database of another one."""
    with postgres_server.running() as old, postgres_server.running() as new:
        asyncio.run(_fill(old))
        everybody = _run("pg_dumpall", "--roles-only", "--dbname", old)
        yield new, everybody, _run("pg_dump", "--format=custom", _named(old))


async def _fill(server: str) -> None:
    """Create a pool with a role, and a worker's role as a user does."""
    await _make(server)
    await schema.migrate(_named(server))
    store = await open_postgres(_named(server), rng=random.Random())
    await store.grant_pool(_ADMISSION)
    await store.close()
    admin = await asyncpg.connect(_named(server))
    await admin.execute("CREATE ROLE hand LOGIN; SELECT workron.grant_worker('hand')")
    await admin.close()


async def _make(server: str) -> None:
    admin = await asyncpg.connect(server)
    await admin.execute("DROP DATABASE IF EXISTS jobs")
    await admin.execute("CREATE DATABASE jobs")
    await admin.close()


def _named(server: str) -> str:
    return parse.urlsplit(server)._replace(path="/jobs").geturl()


def _run(program: str, *words: str, given: bytes | None = None) -> bytes:
    # Existing objects are reported as errors; the test checks the result afterwards.
    command = [str(postgres_server.binaries() / program), *words]
    return subprocess.run(command, input=given, capture_output=True, check=False).stdout


async def _restore(dumped: tuple[str, bytes, bytes], *, has_roles: bool, words: list[str]) -> str:
    server, everybody, database = dumped
    await _make(server)
    admin = await asyncpg.connect(server)
    for row in await admin.fetch("SELECT rolname FROM pg_roles WHERE rolname ~ '^(workron_|hand)'"):
        await admin.execute(f'DROP ROLE "{row[0]}"')
    await admin.close()
    if has_roles:
        _run("psql", server, given=everybody)
    _run("pg_restore", "--clean", "--if-exists", *words, "--dbname", _named(server), given=database)
    return _named(server)


@pytest.mark.parametrize("words", [[], ["--no-privileges"]], ids=["as it was", "no privileges"])
@pytest.mark.parametrize("has_roles", [True, False], ids=["with roles", "without roles"])
async def test_workers_have_no_excess_rights_when_the_database_was_migrated(
    dumped: tuple[str, bytes, bytes], words: list[str], *, has_roles: bool
) -> None:
    url = await _restore(dumped, has_roles=has_roles, words=words)
    assert await schema.migrate(url)
    assert await schema.migrate(url) == []
    store = await open_postgres(url, rng=random.Random())
    admitted = await store.grant_pool(_ADMISSION)
    await store.close()
    admin = await asyncpg.connect(url)
    assert await admin.fetch(_PUBLIC) == []
    assert await admin.fetch(_IS_OPEN, plans.NAMESPACE) == []
    await admin.close()
    worker = await open_worker(admitted.url, rng=random.Random())
    assert (await roles.register(worker, "token")).pool == "own"
    await worker.close()


async def test_ready_jobs_have_current_transactions_when_a_restored_database_was_migrated(
    stage: Stage,
) -> None:
    await stage.submit(plans.array(3))
    for table in ("ready", "run"):
        await stage.sql.execute(f"UPDATE workron.{table} SET inserted_by = '1000000000000'")
    await schema.migrate(stage.dsn)
    assert await stage.sql.fetchval(
        "SELECT max(inserted_by) < pg_snapshot_xmax(pg_current_snapshot()) FROM workron.ready"
    )
    assert await stage.sql.fetchval("SELECT count(inserted_by) FROM workron.run") == 0


async def test_migration_names_the_statements_when_rights_cannot_be_revoked(
    empty_database: str,
) -> None:
    async with (
        roles.owner_of(empty_database) as owner,
        roles.unprivileged_role_in(empty_database) as worker,
    ):
        await schema.migrate(owner.dsn)
        admin = await asyncpg.connect(empty_database)
        await admin.execute(f"GRANT EXECUTE ON FUNCTION workron.register TO {worker.name}")
        [said] = await schema.migrate(owner.dsn)
        assert f"role {worker.name} can do more than run jobs" in said
        assert "REVOKE EXECUTE ON FUNCTION pg_catalog.lo_create(oid)" in said
        assert "TEMPORARY" not in said
        await admin.close()

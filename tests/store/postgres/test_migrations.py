"""Migrating a database to this program's schema: once, by the first process, and only forward."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg
import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY, mint, mint_boot, report_on
from tests.store.postgres import golden, roles
from tests.store.postgres.stage import Stage
from workron.core import errors
from workron.store import migrations, types
from workron.store.postgres import functions, schema
from workron.store.postgres.store import open_postgres

_HEAD = schema.known_migrations()
_FUNCTIONS = f"functions {functions.known_version().number}"
_ALL = [*(step.name for step in _HEAD), _FUNCTIONS]


async def _open(dsn: str) -> None:
    store = await open_postgres(dsn, rng=random.Random())
    await store.close()


_either = pytest.mark.parametrize("call", [schema.migrate, _open])


@pytest.fixture
async def fresh(fresh_database: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(fresh_database)
    yield connection
    await connection.close()


async def _record(connection: asyncpg.Connection, *are_compatible: bool) -> None:
    """Record migrations of a newer program."""
    for number, is_compatible in enumerate(are_compatible, start=len(_HEAD) + 1):
        about = (number, f"{number:04}_add_more.sql", "sum", is_compatible)
        await connection.execute(schema._RECORD, *about)


async def test_schema_is_created_once_when_ten_processes_migrate(empty_database: str) -> None:
    connection = await asyncpg.connect(empty_database)
    # They meet at several points, and a single round would often miss one of them.
    for _ in range(5):
        await connection.execute("DROP SCHEMA IF EXISTS workron CASCADE")
        answers = await asyncio.gather(*(schema.migrate(empty_database) for _ in range(10)))
        assert sorted(answers) == [[]] * 9 + [_ALL]
    await connection.close()
    await _open(empty_database)


async def test_second_migration_changes_nothing(
    fresh: asyncpg.Connection, fresh_database: str
) -> None:
    look = "SELECT oid, xmin, proname FROM pg_proc WHERE pronamespace = 'workron'::regnamespace"
    before = await fresh.fetch(look)
    assert await schema.migrate(fresh_database) == []
    assert await fresh.fetch(look) == before


async def test_migration_waits_when_another_one_runs(stage: Stage) -> None:
    first = await stage.actor()
    await first.begin()
    await first.connection.execute("LOCK TABLE workron.migration IN ACCESS EXCLUSIVE MODE")
    second = await stage.actor()
    migrating = await stage.start(second, schema._migrate(second.connection))
    assert not migrating.done()
    await first.commit()
    assert await migrating == []


async def test_migration_fails_when_another_session_keeps_the_lock(stage: Stage) -> None:
    await stage.watcher.begin()
    await stage.sql.execute("LOCK TABLE workron.migration IN ACCESS EXCLUSIVE MODE")
    with pytest.raises(errors.StoreBusyError, match=r"a lock on the schema for 0\.02 s; end it"):
        await schema.migrate(stage.dsn, lock_seconds=0.02)


async def test_migration_fails_when_a_statement_times_out(stage: Stage) -> None:
    await stage.watcher.begin()
    await stage.sql.execute("LOCK TABLE workron.migration IN ACCESS EXCLUSIVE MODE")
    with pytest.raises(errors.StoreUnreachableError, match=r"cannot migrate .*: no answer in time"):
        await schema.migrate(stage.dsn, statement_seconds=0.5)


@_either
async def test_changed_file_is_refused_and_named(
    fresh: asyncpg.Connection, fresh_database: str, call: Any
) -> None:
    await fresh.execute("UPDATE workron.migration SET checksum = 'other' WHERE number = 1")
    with pytest.raises(errors.SchemaError, match=_HEAD[0].name):
        await call(fresh_database)


@_either
async def test_schema_one_newer_is_accepted_when_it_is_compatible(
    fresh: asyncpg.Connection, fresh_database: str, call: Any
) -> None:
    await _record(fresh, True)
    await call(fresh_database)


@_either
@pytest.mark.parametrize("are_compatible", [[False], [True, True], [False, True]])
async def test_schema_too_new_is_refused(
    fresh: asyncpg.Connection, fresh_database: str, call: Any, are_compatible: list[bool]
) -> None:
    await _record(fresh, *are_compatible)
    with pytest.raises(errors.SchemaError, match="install a newer workron"):
        await call(fresh_database)


async def _install_other_functions(connection: asyncpg.Connection, *, ahead: int) -> None:
    """Install the functions of a program that is this many changes ahead of this one."""
    text = functions.function_sources()["evaluate"].replace(
        "'Finished' THEN 0", "'Finished' THEN 5"
    )
    await connection.execute(text)
    await _number(connection, ahead=ahead)


async def _number(connection: asyncpg.Connection, *, ahead: int) -> None:
    version = functions.FunctionSetVersion(functions.known_version().number + ahead, "other")
    await connection.execute(functions._RECORD, str(version))


_WEIGH = "SELECT workron.evaluate('Finished', 'Succeeded', NULL)"
_not_newer = pytest.mark.parametrize("ahead", [-1, 0])


@_not_newer
async def test_functions_are_installed_again_when_they_differ(
    fresh: asyncpg.Connection, fresh_database: str, ahead: int
) -> None:
    await _install_other_functions(fresh, ahead=ahead)
    assert await fresh.fetchval(_WEIGH) == 5
    assert await schema.migrate(fresh_database) == [_FUNCTIONS]
    assert await fresh.fetchval(_WEIGH) == 0


@_not_newer
async def test_open_names_the_command_when_the_functions_are_older(
    fresh: asyncpg.Connection, fresh_database: str, ahead: int
) -> None:
    await _number(fresh, ahead=ahead)
    with pytest.raises(errors.SchemaError, match=r"functions in .* are older.*workron migrate"):
        await _open(fresh_database)
    await schema.migrate(fresh_database)
    await _open(fresh_database)


async def test_functions_are_older_when_they_have_no_number(
    fresh: asyncpg.Connection, fresh_database: str
) -> None:
    await fresh.execute("DELETE FROM workron.meta WHERE key = 'functions'")
    with pytest.raises(errors.SchemaError, match="workron migrate"):
        await _open(fresh_database)
    assert await schema.migrate(fresh_database) == [_FUNCTIONS]


async def test_newer_functions_stay_when_an_older_program_migrates(
    fresh: asyncpg.Connection, fresh_database: str
) -> None:
    await _install_other_functions(fresh, ahead=1)
    assert await schema.migrate(fresh_database) == []
    await _open(fresh_database)
    assert await fresh.fetchval(_WEIGH) == 5


async def test_newer_functions_are_accepted_when_they_return_more_columns(
    fresh: asyncpg.Connection, fresh_database: str
) -> None:
    await _replace(
        fresh, "RETURNS TABLE (answer text, more text)", "_a uuid[], _b bigint[], _c text"
    )
    await _number(fresh, ahead=9)
    await _open(fresh_database)


@_either
async def test_newer_functions_are_refused_when_they_lack_a_called_one(
    fresh: asyncpg.Connection, fresh_database: str, call: Any
) -> None:
    await _replace(fresh, "RETURNS TABLE (answer text)", "_rights jsonb")
    await _number(fresh, ahead=1)
    lack = r"lack release\(uuid, uuid\[\], bigint\[\], text\).*install a newer workron"
    with pytest.raises(errors.SchemaError, match=lack):
        await call(fresh_database)


async def _replace(connection: asyncpg.Connection, result: str, parameters: str) -> None:
    """Install another `release` instead of ours, for the same roles."""
    granted = await connection.fetch(functions._GRANTEES, "release")
    await functions._drop(connection, functions._NAMED, "release")
    await connection.execute(
        f"CREATE FUNCTION workron.release(_session uuid, {parameters}) {result} "
        "LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN END'"
    )
    await connection.execute("REVOKE ALL ON FUNCTION workron.release FROM PUBLIC")
    for row in granted:
        await connection.execute(f"GRANT EXECUTE ON FUNCTION workron.release TO {row['role']}")


@pytest.mark.parametrize(
    ("result", "parameters"),
    [
        ("RETURNS void", "_claims uuid[], _fences bigint[]"),
        ("RETURNS TABLE (answer text)", "_claims uuid[]"),
        ("RETURNS TABLE (answer text)", "_other uuid[], _name bigint[]"),
    ],
)
async def test_function_keeps_its_grants_when_its_signature_changes(
    fresh: asyncpg.Connection, fresh_database: str, result: str, parameters: str
) -> None:
    async with roles.made_in(fresh_database) as role:
        await _replace(fresh, result, parameters)
        await _number(fresh, ahead=-1)
        await schema.migrate(fresh_database)
        assert await golden.dump(fresh) == golden.FILE.read_text()
        connection = await role.connect()
        with pytest.raises(asyncpg.PostgresError, match="unknown session key"):
            await connection.fetch("SELECT workron.release(gen_random_uuid(), '{}', '{}')")
        await connection.close()


async def test_open_store_continues_when_all_functions_are_replaced(stage: Stage) -> None:
    store = await open_postgres(stage.dsn, rng=random.Random())
    token = await store.ensure_pool(plans.NAMESPACE, "default")
    session = await store.register(types.Registration(token, "worker", mint_boot(), slots=MANY))

    async def work(name: str) -> Sequence[types.ReportResult]:
        await store.submit([plans.dag(name, a=plans.task(), b=plans.task("a"))])
        [claimed] = await store.claim(session.key, mint())
        return (await store.complete(session.key, [report_on(claimed)])).answers

    assert await work("before") == [types.ReportResult.ACCEPTED]
    await stage.sql.execute("SET search_path = workron, pg_catalog")
    await functions._drop(stage.sql, functions._UNKNOWN, [])
    await _number(stage.sql, ahead=-1)
    await schema.migrate(stage.dsn)
    assert await work("after") == [types.ReportResult.ACCEPTED]
    await store.close()


async def test_function_is_dropped_when_the_program_lacks_it(
    fresh: asyncpg.Connection, fresh_database: str
) -> None:
    await fresh.execute("CREATE FUNCTION workron.gone() RETURNS void LANGUAGE sql AS ''")
    await _number(fresh, ahead=-1)
    await schema.migrate(fresh_database)
    assert await golden.dump(fresh) == golden.FILE.read_text()


async def test_grants_stay_when_functions_are_installed_again(
    fresh: asyncpg.Connection, fresh_database: str
) -> None:
    async with roles.made_in(fresh_database) as role:
        await _install_other_functions(fresh, ahead=-1)
        await schema.migrate(fresh_database)
        connection = await role.connect()
        with pytest.raises(asyncpg.PostgresError, match="unknown session key"):
            await connection.fetch("SELECT workron.heartbeat(gen_random_uuid())")
        await connection.close()


async def test_migration_changes_nothing_when_it_fails(
    fresh: asyncpg.Connection, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "CREATE TABLE half (one integer); SELECT 1 / 0;"
    broken = migrations.Migration(len(_HEAD) + 1, "0002_break_it.sql", text, "sum", True)
    monkeypatch.setattr(schema, "known_migrations", lambda: [*_HEAD, broken])
    with pytest.raises(errors.StoreError, match="division by zero"):
        await schema.migrate(fresh_database)
    assert await fresh.fetchval("SELECT to_regclass('workron.half')") is None
    assert await fresh.fetchval("SELECT count(*) FROM workron.migration") == len(_HEAD)


async def test_open_names_the_command_when_a_migration_is_missing(
    fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = migrations.Migration(len(_HEAD) + 1, "0002_add_more.sql", "SELECT 1", "sum", True)
    monkeypatch.setattr(schema, "known_migrations", lambda: [*_HEAD, more])
    with pytest.raises(errors.SchemaError, match=r"lacks 0002_add_more\.sql.*workron migrate"):
        await _open(fresh_database)
    assert await schema.migrate(fresh_database) == ["0002_add_more.sql"]
    await _open(fresh_database)


async def test_schema_is_created_when_the_owner_is_not_a_superuser(empty_database: str) -> None:
    async with roles.owner_of(empty_database) as owner:
        assert await schema.migrate(owner.dsn) == _ALL
        await _open(owner.dsn)

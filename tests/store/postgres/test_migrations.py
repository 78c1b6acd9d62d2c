"""Bringing a database to this program's schema: once, by whoever comes first, and never back."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from tests.store.postgres import roles
from tests.store.postgres.stage import Stage
from workron.core import errors
from workron.store import migration, postgres
from workron.store.postgres import schema, statements

_HEAD = schema.known()


async def _open(dsn: str) -> None:
    store = await postgres.open_postgres(dsn, rng=random.Random())
    await store.close()


_either = pytest.mark.parametrize("call", [postgres.migrate, _open])


@pytest.fixture
async def fresh(fresh_database: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(fresh_database)
    yield connection
    await connection.close()


async def _record(connection: asyncpg.Connection, *are_compatible: bool) -> None:
    """Record migrations that a newer program brought."""
    for number, is_compatible in enumerate(are_compatible, start=len(_HEAD) + 1):
        about = (number, f"{number:04}_add_more.sql", "sum", is_compatible)
        await connection.execute(schema._RECORD, *about)


async def test_schema_is_made_once_when_ten_migrate_at_once(empty_database: str) -> None:
    connection = await asyncpg.connect(empty_database)
    # They meet at several places, one of which a single round would miss as often as not.
    for _ in range(5):
        await connection.execute("DROP SCHEMA IF EXISTS workron CASCADE")
        answers = await asyncio.gather(*(postgres.migrate(empty_database) for _ in range(10)))
        assert sorted(answers) == [[]] * 9 + [[step.name for step in _HEAD]]
    await connection.close()
    await _open(empty_database)


async def test_second_migration_changes_nothing(
    fresh: asyncpg.Connection, fresh_database: str
) -> None:
    look = "SELECT oid, xmin, proname FROM pg_proc WHERE pronamespace = 'workron'::regnamespace"
    before = await fresh.fetch(look)
    assert await postgres.migrate(fresh_database) == []
    assert await fresh.fetch(look) == before


async def test_migration_waits_for_the_one_under_way(stage: Stage) -> None:
    first = await stage.actor()
    await first.begin()
    await first.connection.execute("LOCK TABLE workron.migration IN ACCESS EXCLUSIVE MODE")
    second = await stage.actor()
    migrating = await stage.start(second, schema._migrate(second.connection))
    assert not migrating.done()
    await first.commit()
    assert await migrating == []


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


async def _put_another_weigh(connection: asyncpg.Connection) -> None:
    text = statements.functions()["weigh"].replace("'Finished' THEN 0", "'Finished' THEN 5")
    await connection.execute(text)
    await connection.execute("UPDATE workron.meta SET value = 'other' WHERE key = 'functions'")


_WEIGH = "SELECT workron.weigh('Finished', 'Succeeded', NULL)"


async def test_functions_are_installed_again_when_they_are_not_this_programs(
    fresh: asyncpg.Connection, fresh_database: str
) -> None:
    await _put_another_weigh(fresh)
    assert await fresh.fetchval(_WEIGH) == 5
    await postgres.migrate(fresh_database)
    assert await fresh.fetchval(_WEIGH) == 0


async def test_functions_of_a_newer_program_stay_when_an_older_one_migrates(
    fresh: asyncpg.Connection, fresh_database: str
) -> None:
    await _put_another_weigh(fresh)
    await _record(fresh, True)
    await postgres.migrate(fresh_database)
    assert await fresh.fetchval(_WEIGH) == 5


async def test_grants_stay_when_functions_are_installed_again(
    fresh: asyncpg.Connection, fresh_database: str
) -> None:
    async with roles.made_in(fresh_database) as role:
        await _put_another_weigh(fresh)
        await postgres.migrate(fresh_database)
        connection = await role.connect()
        with pytest.raises(asyncpg.PostgresError, match="no worker has this session key"):
            await connection.fetch("SELECT workron.beat(gen_random_uuid())")
        await connection.close()


async def test_nothing_is_kept_of_a_migration_that_fails(
    fresh: asyncpg.Connection, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "CREATE TABLE half (one integer); SELECT 1 / 0;"
    broken = migration.Migration(len(_HEAD) + 1, "0002_break_it.sql", text, "sum", True)
    monkeypatch.setattr(schema, "known", lambda: [*_HEAD, broken])
    with pytest.raises(errors.StoreError, match="division by zero"):
        await postgres.migrate(fresh_database)
    assert await fresh.fetchval("SELECT to_regclass('workron.half')") is None
    assert await fresh.fetchval("SELECT count(*) FROM workron.migration") == len(_HEAD)


async def test_missing_migration_is_named_with_the_command_when_a_store_is_opened(
    fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = migration.Migration(len(_HEAD) + 1, "0002_add_more.sql", "SELECT 1", "sum", True)
    monkeypatch.setattr(schema, "known", lambda: [*_HEAD, more])
    with pytest.raises(errors.SchemaError, match=r"lacks 0002_add_more\.sql.*workron migrate"):
        await _open(fresh_database)
    assert await postgres.migrate(fresh_database) == ["0002_add_more.sql"]
    await _open(fresh_database)


async def test_schema_is_made_by_an_owner_who_is_no_superuser(empty_database: str) -> None:
    async with roles.owner_of(empty_database) as owner:
        assert await postgres.migrate(owner.dsn) == [step.name for step in _HEAD]
        await _open(owner.dsn)

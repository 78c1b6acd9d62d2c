"""A role after `grant_worker` can call a worker's functions, and nothing else."""

import re

import asyncpg
import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import mint, report_on
from tests.store.postgres import roles
from tests.store.postgres.roles import Role
from tests.store.postgres.stage import Stage
from workron.core import errors
from workron.store.api import WorkerStore
from workron.store.postgres import schema
from workron.store.types import ReportResult

_VERBS = {name for name in vars(WorkerStore) if not name.startswith("_")} - {
    "wait_for_work",
    "close",
}

_MAY_ENTER = "SELECT has_schema_privilege($1, 'workron', 'USAGE')"
_RELATIONS = """
    SELECT format('%I.%I', n.nspname, c.relname) AS name, c.relkind::text AS kind,
           (SELECT quote_ident(a.attname) FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attidentity = ''
            ORDER BY a.attnum LIMIT 1) AS column
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
      AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
"""
_FUNCTIONS = """
    SELECT format('%s(%s)', p.oid::regproc, (
        SELECT string_agg('NULL::' || format_type(t, NULL), ', ') FROM unnest(p.proargtypes) t
    )) AS call, p.proname::text AS name, p.prosecdef AS is_definer,
    p.proconfig::text[] AS settings, p.proacl IS NULL OR EXISTS (
        SELECT 1 FROM aclexplode(p.proacl) a WHERE a.grantee = 0) AS is_public
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'workron'
"""
_ELSEWHERE = [
    "CREATE TABLE public.mine (one integer)",
    "CREATE TABLE workron.mine (one integer)",
    "CREATE FUNCTION workron.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE SCHEMA mine",
    "CREATE TEMPORARY TABLE mine (one integer)",
    "CREATE ROLE mine",
    "CREATE DATABASE mine",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'mine')",
    "SELECT * FROM pg_authid",
    "SELECT * FROM pg_shadow",
    "SELECT pg_read_file('PG_VERSION')",
    "SELECT pg_ls_dir('.')",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "ALTER SYSTEM SET work_mem = '1GB'",
    "SET session_replication_role = replica",
    "DROP SCHEMA workron CASCADE",
]


def _attempts_on(row: asyncpg.Record) -> list[str]:
    name, column = row["name"], row["column"]
    if row["kind"] == "S":
        return [f"SELECT nextval('{name}')", f"SELECT setval('{name}', 1)", f"TABLE {name}"]
    if row["kind"] == "v":
        return [f"TABLE {name}", f"COPY (TABLE {name}) TO STDOUT", f"DROP VIEW {name}"]
    return [
        f"SELECT 1 FROM {name}",
        f"SELECT 1 FROM {name} FOR KEY SHARE",
        f"INSERT INTO {name} DEFAULT VALUES",
        f"UPDATE {name} SET {column} = {column}",
        f"DELETE FROM {name}",
        f"TRUNCATE {name}",
        f"COPY {name} TO STDOUT",
        f"DO $$ BEGIN LOCK TABLE {name} IN ACCESS SHARE MODE; END $$",
        f"ALTER TABLE {name} ADD COLUMN mine integer",
        f"DROP TABLE {name}",
        f"CREATE INDEX ON {name} ({column})",
    ]


async def test_role_runs_a_job_from_its_claim_to_its_end(stage: Stage, role: Role) -> None:
    run = await stage.submit(plans.dag(a=plans.task(), b=plans.task("a")))
    async with role.open_worker_store() as store:
        key = (await roles.register(store, stage.token)).key
        (first,) = await store.claim(key, mint())
        assert await store.append_output(key, first.ref, 0, b"text") is ReportResult.ACCEPTED
        assert [held.job for held in (await store.heartbeat(key)).held] == [first.job]
        assert await store.release(key, [first.ref]) == [ReportResult.ACCEPTED]
        (again,) = await store.claim(key, mint())
        (second,) = (await store.complete(key, [report_on(again)], mint())).claimed
        await store.complete(key, [report_on(second, output=b"tail")])
        await store.deregister(key)
    await stage.settle()
    assert set((await stage.states(run)).values()) == {"Succeeded"}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"outcome": "Held"}, "Succeeded, Failed or Retry"),
        ({"outcome": "Cancelled"}, "Succeeded, Failed or Retry"),
        ({"outcome": None}, "Succeeded, Failed or Retry"),
        ({"outcome": "Failed", "reason": "Nonsense"}, "reason is a failure reason"),
        ({"outcome": "Failed", "reason": "NotNeeded"}, "reason is a failure reason"),
        ({"outcome": "Retry", "reason": "Backoff"}, "reason is a failure reason"),
        ({"outcome": "Failed", "reason": None}, "reason matches state"),
        ({"result": "no JSON"}, "invalid input syntax for type json"),
        ({"result": '"\\u0000"'}, "unsupported Unicode escape"),
        ({"result": "1" * 65_537}, "more than 65536 bytes"),
        ({"message": "x" * 5000, "outcome": "Held"}, "Succeeded, Failed or Retry"),
    ],
    ids=str,
)
async def test_role_cannot_store_an_unknown_outcome(
    stage: Stage, role: Role, wrong: dict[str, str | None], right: str
) -> None:
    run = await stage.submit(plans.job())
    async with role.open_worker_store() as store:
        key = (await roles.register(store, stage.token)).key
        (claimed,) = await store.claim(key, mint())
    end = {"outcome": "Succeeded", "reason": None, "message": None, "result": None} | wrong
    connection = await role.connect()
    with pytest.raises(asyncpg.PostgresError, match=right):
        await connection.fetch(
            "SELECT * FROM workron.complete($1, ARRAY[$2::bigint], ARRAY[$3::uuid],"
            " ARRAY[$4::bigint], ARRAY[$5], ARRAY[$6], ARRAY[$7], '{0}', '{1}', ARRAY[$8],"
            " ARRAY[''::bytea], '{}')",
            *(key, claimed.job, *claimed.ref),
            *(end["outcome"], end["reason"], end["message"], end["result"]),
        )
    await connection.close()
    assert await stage.states(run) == {"job": "Running"}


async def test_role_can_do_nothing_with_any_relation(stage: Stage, role: Role) -> None:
    rows = await stage.sql.fetch(_RELATIONS)
    assert len(rows) > 20
    connection = await role.connect()
    through = await roles.allowed(
        connection, [attempt for row in rows for attempt in _attempts_on(row)]
    )
    await connection.close()
    assert not through, "; ".join(through)


async def test_role_can_call_only_the_functions_of_a_worker(stage: Stage, role: Role) -> None:
    rows = await stage.sql.fetch(_FUNCTIONS)
    assert {row["name"] for row in rows} > _VERBS
    connection = await role.connect()
    through = await roles.allowed(
        connection, [f"SELECT {row['call']}" for row in rows if row["name"] not in _VERBS]
    )
    await connection.close()
    assert not through, "; ".join(through)


async def test_role_can_create_and_read_nothing_in_other_schemas(stage: Stage, role: Role) -> None:
    owner = await stage.sql.fetchval("SELECT current_user")
    connection = await role.connect()
    through = await roles.allowed(connection, [*_ELSEWHERE, f'SET ROLE "{owner}"'])
    await connection.close()
    assert not through, "; ".join(through)


async def test_role_can_call_no_function_when_it_has_no_grant(stage: Stage, role: Role) -> None:
    await stage.sql.execute(f"DROP OWNED BY {role.name}")
    async with role.open_worker_store() as store:
        with pytest.raises(errors.StoreError, match="permission denied"):
            await roles.register(store, stage.token)


async def test_grant_names_the_statements_for_a_superuser_when_it_is_refused(
    empty_database: str,
) -> None:
    async with (
        roles.owner_of(empty_database) as owner,
        roles.unprivileged_role_in(empty_database) as role,
    ):
        await schema.migrate(owner.dsn)
        own = await owner.connect()
        grant = f"SELECT workron.grant_worker('{role.name}')"
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match=owner.name) as refusal:
            await own.execute(grant)
        assert not await own.fetchval(_MAY_ENTER, role.name)
        left = re.findall(r"REVOKE [^;]*;", str(refusal.value.hint))
        assert [one.split()[1] for one in left] == ["EXECUTE"] * 3
        admin = await asyncpg.connect(empty_database)
        await admin.execute("".join(left))
        await admin.close()
        await own.execute(grant)
        assert await own.fetchval(_MAY_ENTER, role.name)
        await own.close()
        connection = await role.connect()
        assert await roles.allowed(connection, _ELSEWHERE) == []
        await connection.close()


async def test_grant_names_the_database_when_the_caller_does_not_own_it(
    empty_database: str,
) -> None:
    async with (
        roles.unprivileged_role_in(empty_database) as other,
        roles.unprivileged_role_in(empty_database) as role,
    ):
        admin = await asyncpg.connect(empty_database)
        await admin.execute(f"""
            DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO {other.name}',
                                       current_database()); END $$""")
        await schema.migrate(other.dsn)
        own = await other.connect()
        with pytest.raises(asyncpg.InsufficientPrivilegeError) as refusal:
            await own.execute(f"SELECT workron.grant_worker('{role.name}')")
        assert "REVOKE TEMPORARY ON DATABASE" in str(refusal.value.hint)
        await own.close()
        await admin.close()


async def test_only_the_functions_of_a_worker_run_as_their_owner(stage: Stage) -> None:
    rows = await stage.sql.fetch(_FUNCTIONS)
    assert {row["name"] for row in rows if row["is_definer"]} == _VERBS


async def test_functions_are_not_executable_by_default(stage: Stage) -> None:
    rows = await stage.sql.fetch(_FUNCTIONS)
    assert [row["name"] for row in rows if row["is_public"]] == []


async def test_functions_search_the_temporary_schema_last(stage: Stage) -> None:
    rows = await stage.sql.fetch(_FUNCTIONS)
    for row in rows:
        if row["is_definer"]:
            assert "search_path=workron, pg_catalog, pg_temp" in row["settings"], row["name"]


async def _register_with_a_false_equals(stage: Stage, role: Role) -> None:
    """Register with a wrong token in a session where all hashes are equal."""
    await stage.sql.execute(f"CREATE SCHEMA evil AUTHORIZATION {role.name}")
    attacker = await role.connect()
    await attacker.execute("""
        CREATE FUNCTION evil.yes(bytea, bytea) RETURNS boolean LANGUAGE sql AS 'SELECT true';
        CREATE OPERATOR evil.= (FUNCTION = evil.yes, LEFTARG = bytea, RIGHTARG = bytea);
        SET search_path = evil, pg_catalog, workron;
    """)
    try:
        await attacker.fetch(
            "SELECT * FROM workron.register('wrong', 'thief', gen_random_uuid(), 1)"
        )
    finally:
        await attacker.close()


async def test_token_is_compared_correctly_when_the_caller_has_its_own_operator(
    stage: Stage, role: Role
) -> None:
    with pytest.raises(asyncpg.PostgresError, match="the token is unknown"):
        await _register_with_a_false_equals(stage, role)


async def test_wrong_token_is_accepted_when_the_search_path_is_not_fixed(
    stage: Stage, role: Role
) -> None:
    await stage.replace("register", r"SET search_path = [^\n]*", "")
    await _register_with_a_false_equals(stage, role)
    assert [one.name for one in await stage.watcher.list_heartbeats()] == ["thief"]


async def test_functions_use_their_own_tables_when_the_caller_has_temporary_ones(
    stage: Stage, role: Role
) -> None:
    await stage.submit(plans.job())
    await stage.sql.execute(f"""
        DO $$ BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO {role.name}',
                                   current_database()); END $$""")
    async with role.open_worker_store() as store:
        session = await roles.register(store, stage.token)
    attacker = await role.connect()
    for table in ("worker", "ready", "running", "job", "run", "spec", "pool", "token"):
        await attacker.execute(f"CREATE TEMPORARY TABLE {table} (one integer)")
    await attacker.execute("SET search_path = pg_temp, workron")
    claimed = await attacker.fetch("SELECT * FROM workron.claim($1, $2)", session.key, mint())
    await attacker.close()
    assert len(claimed) == 1


async def test_public_rights_are_revoked_when_a_role_is_granted(stage: Stage, role: Role) -> None:
    await stage.sql.execute("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA workron TO PUBLIC")
    assert not await stage.sql.fetchval("SELECT workron.has_worker_rights($1)", role.name)
    await stage.sql.execute("SELECT workron.grant_worker($1)", role.name)
    assert await stage.sql.fetchval("SELECT workron.has_worker_rights($1)", role.name)

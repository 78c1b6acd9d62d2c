"""No operation reads more rows when a million jobs have ended and a million wait."""

import asyncio
import secrets
from collections.abc import Iterator
from urllib import parse

import asyncpg
import pytest

from tests.store.postgres import large_database
from tests.store.postgres.large_database import ReadCost, ReadCosts

# Inserting two million jobs takes longer than a test may.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("large_database"),
]

_SESSIONS = ["warmed", "not analyzed", "analyzed"]
_LARGE_TABLES = {
    *("job", "run", "name", "spec", "edge", "waiting", "ready", "deferred", "deadline", "done"),
    *("running", "attempt", "unpropagated", "external_dependency"),
}
# How many rows an operation may read, how many blocks, and which indexes it must search.
# `complete` propagates ten ends to a hundred downstreams, `propagate` a hundred to a thousand.
# `list_owned` lists two hundred runs with running jobs, and a hundred that wait.
_BOUNDS: dict[str, tuple[int, int, set[str]]] = {
    "claim": (200, 600, {"ready_claim_order", "ready_pkey", "worker_session_key"}),
    "complete": (2_000, 6_000, {"ready_claim_order", "waiting_pkey", "edge_pkey", "done_pkey"}),
    "report late": (100, 200, {"attempt_pkey"}),
    "release": (150, 300, {"running_pkey"}),
    "release late": (100, 200, {"attempt_released"}),
    "append_output": (50, 50, {"output_pkey"}),
    "heartbeat": (100, 50, {"worker_session_key", "running_worker"}),
    "promote": (500, 3_000, {"deferred_due", "deferred_pkey"}),
    "expire": (2_000, 5_000, {"deadline_due", "ready_pkey", "deferred_pkey", "waiting_pkey"}),
    "propagate": (20_000, 50_000, {"edge_pkey", "waiting_pkey"}),
    "list_heartbeats": (50, 20, set()),
    "submit": (
        200,
        600,
        {"name_pkey", "run_uid_key", "external_dependency_pkey", "external_dependency_downstream"},
    ),
    "update_run": (3_000, 8_000, {"waiting_pkey", "ready_pkey", "deferred_pkey", "running_pkey"}),
    "list_owned": (
        1_000,
        2_500,
        {"waiting_pkey", "ready_pkey", "deferred_pkey", "running_pkey", "run_pkey"},
    ),
    "find_by_uid": (10, 20, {"run_uid_key"}),
    "list_failures": (500, 500, {"run_pkey", "done_pkey"}),
    "cancel": (2_000, 6_000, {"waiting_pkey", "external_dependency_downstream"}),
    "reap": (200, 400, {"worker_pkey", "running_worker"}),
    "audit": (6_000, 15_000, {"external_dependency_downstream"}),
    "find_run": (20, 40, {"name_pkey"}),
    "get_run": (20, 40, {"job_pkey", "run_pkey"}),
    "list_run_summaries": (
        300,
        1_000,
        {"run_listed", "run_pkey", "job_group", "done_pkey", "running_pkey"},
    ),
    "get_jobs": (30, 60, {"job_pkey", "done_pkey", "waiting_pkey", "ready_pkey", "attempt_pkey"}),
    "filter_ended": (10, 20, {"done_pkey"}),
    "find_job": (300, 200, {"run_pkey", "job_pkey"}),
    "get_spec": (10, 20, {"job_pkey", "spec_pkey"}),
    "list_jobs": (1_000, 300, {"job_pkey", "done_pkey", "waiting_pkey", "ready_pkey"}),
    "count_states": (1_000, 1_000, {"done_pkey", "waiting_pkey", "ready_pkey"}),
    "list_specs": (500, 1_000, {"job_pkey"}),
    "list_attempts": (50, 50, {"attempt_pkey"}),
    "list_blockers": (500, 200, {"edge_downstream", "external_dependency_downstream"}),
    "read_output": (50, 50, set()),
    "read_output_chunks": (50, 50, set()),
    "read_result": (50, 50, set()),
}


@pytest.fixture(scope="module")
def read_costs(postgres_dsn: str, migrated_template: str) -> Iterator[ReadCosts]:
    name = f"workron_large_{secrets.token_hex(6)}"
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(_execute(postgres_dsn, f"CREATE DATABASE {name} TEMPLATE {migrated_template}"))
        try:
            large = parse.urlsplit(postgres_dsn)._replace(path=f"/{name}").geturl()
            yield runner.run(large_database.measured(large))
        finally:
            runner.run(_execute(postgres_dsn, f"DROP DATABASE {name} WITH (FORCE)"))


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(statement)
    await connection.close()


@pytest.fixture(params=_SESSIONS)
def session(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=_BOUNDS)
def verb(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def read_cost(read_costs: ReadCosts, session: str, verb: str) -> ReadCost:
    return read_costs[session, verb]


def test_operation_scans_no_large_table(read_cost: ReadCost) -> None:
    assert not read_cost.read_through & _LARGE_TABLES


def test_operation_stays_within_its_bounds(read_cost: ReadCost, verb: str) -> None:
    rows, blocks, _ = _BOUNDS[verb]
    assert read_cost.rows <= rows
    assert read_cost.blocks <= blocks


def test_operation_searches_its_indexes(read_cost: ReadCost, verb: str) -> None:
    assert read_cost.searched >= _BOUNDS[verb][2]


def test_every_operation_has_bounds(read_costs: ReadCosts) -> None:
    assert set(read_costs) == {(session, verb) for session in _SESSIONS for verb in _BOUNDS}

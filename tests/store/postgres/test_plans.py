"""No verb reads more because more has ended or waits: a million of each stand by."""

import asyncio
import secrets
from collections.abc import Iterator
from urllib import parse

import asyncpg
import pytest

from tests.store.postgres import crowd
from tests.store.postgres.crowd import Toll, Tolls

# Making two million jobs takes longer than a test may.
pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("crowd")]

_SESSIONS = ["warmed", "not analyzed", "analyzed"]
_CROWDED = {
    *("job", "run", "name", "spec", "edge", "waiting", "ready", "deferred", "deadline", "done"),
    *("running", "attempt", "unpropagated", "external_dependency"),
}
# How many rows a verb may look at, how many blocks it may open, and what it must have searched.
# `complete` tells of ten ends a hundred downstreams, `settle` of a hundred ends a thousand.
# `owned` lists two hundred runs jobs of which run, and a hundred that wait.
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
def tolls(postgres_dsn: str, migrated_template: str) -> Iterator[Tolls]:
    name = f"workron_crowd_{secrets.token_hex(6)}"
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(_execute(postgres_dsn, f"CREATE DATABASE {name} TEMPLATE {migrated_template}"))
        try:
            crowded = parse.urlsplit(postgres_dsn)._replace(path=f"/{name}").geturl()
            yield runner.run(crowd.measured(crowded))
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
def toll(tolls: Tolls, session: str, verb: str) -> Toll:
    return tolls[session, verb]


def test_verb_reads_no_crowded_table_from_end_to_end(toll: Toll) -> None:
    assert not toll.read_through & _CROWDED


def test_verb_touches_no_more_than_its_bounds(toll: Toll, verb: str) -> None:
    rows, blocks, _ = _BOUNDS[verb]
    assert toll.rows <= rows
    assert toll.blocks <= blocks


def test_verb_searches_the_indexes_that_are_made_for_it(toll: Toll, verb: str) -> None:
    assert toll.searched >= _BOUNDS[verb][2]


def test_every_verb_has_bounds(tolls: Tolls) -> None:
    assert set(tolls) == {(session, verb) for session in _SESSIONS for verb in _BOUNDS}

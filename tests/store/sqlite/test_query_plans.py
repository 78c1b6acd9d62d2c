"""Plans of the hot statements: they search an index and scan no table."""

import re
import sqlite3

import pytest

from workron.store.sqlite.connection import statement_text, statements_in

_LISTS = {"claims", "jobs", "upstreams", "specs"}
_HOT = [
    file if name == file else f"{file}.{name}"
    for file in (
        *("find_session", "heartbeat", "claim", "complete", "requeue", "end_claims", "enqueue"),
        *("propagate_ends", "leave_queues", "release", "append_output", "submit", "delete_run"),
        *("list_jobs", "list_specs", "list_attempts", "read_result"),
        *(
            "get_jobs",
            "get_run",
            "filter_ended",
            "find_job",
            "get_spec",
            "read_output_chunks",
            "list_owned",
        ),
    )
    for name in statements_in(file)
]

_JOB = """
    INSERT INTO job (id, run, kind, spec, name, "index", group_id, group_condition, pool, priority,
                     feeds_inputs, max_losses, needs_proof)
    VALUES (?, 1, ?, 1, 'name', ?, ?, ?, 1, 0, 0, 0, 0)
"""


def _plan(connection: sqlite3.Connection, name: str) -> list[str]:
    text = statement_text(name)
    values: object = {key: "[]" if key in _LISTS else 1 for key in re.findall(r":(\w+)", text)}
    if "?" in text:
        values = [1] * text.count("?")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {text}", values)  # type: ignore[arg-type]
    return [row[3] for row in rows]


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {row[0] for row in rows}


def _scanned(connection: sqlite3.Connection, name: str) -> set[str]:
    steps = _plan(connection, name)
    scanned = {step.removeprefix("SCAN ").split()[0] for step in steps if "SCAN " in step}
    return scanned & _tables(connection)


@pytest.mark.parametrize("name", _HOT)
def test_hot_statement_scans_no_table(bare: sqlite3.Connection, name: str) -> None:
    assert _scanned(bare, name) == set()


def test_summaries_scan_only_the_runs(bare: sqlite3.Connection) -> None:
    assert _scanned(bare, "list_run_summaries") == {"run"}


@pytest.mark.parametrize("kind", ["Array", "Workflow"])
def test_group_state_does_not_read_every_member(bare: sqlite3.Connection, kind: str) -> None:
    steps: list[int] = []
    group = 1 if kind == "Workflow" else 2
    bare.execute("INSERT INTO pool VALUES (1, 'space', 'default', 10)")
    bare.execute(
        "INSERT INTO run (id, last, uid, namespace, kind, name, digest, submitted_at, metadata)"
        " VALUES (1, 20002, 'uid', 'space', 'Workflow', 'flow', '', 0, '{}')"
    )
    bare.executemany(_JOB, [(1, "Workflow", None, None, None), (2, "Array", None, 1, "Task")])
    bare.executemany(_JOB, ((job, "Job", job - 3, 2, "Member") for job in range(3, 20_003)))
    bare.executemany(
        "INSERT INTO waiting (job, remaining, priority) VALUES (?, 1, 0)",
        ((job,) for job in range(1, 20_003)),
    )
    bare.set_progress_handler(lambda: steps.append(1), 100)
    [row] = bare.execute(statement_text("get_jobs"), {"jobs": f"[{group}]"})
    assert row["state"] == "Waiting"
    assert len(steps) < 10


def test_claim_reads_the_index_in_order(bare: sqlite3.Connection) -> None:
    plan = _plan(bare, "claim.select_ready")
    walk = next(place for place, step in enumerate(plan) if "ready_claim_order" in step)
    assert "pool=? AND alone=?" in plan[walk]
    # Only the few rows found are sorted, to be numbered.
    assert not any("TEMP B-TREE" in step for step in plan[:walk])


def test_claim_does_not_read_other_pools(bare: sqlite3.Connection) -> None:
    steps: list[int] = []
    bare.execute("BEGIN")
    bare.executemany(
        "INSERT INTO ready VALUES (?, ?, 0, 0, 0, 0, 0, 0)", ((job, 1) for job in range(20_000))
    )
    bare.execute("INSERT INTO ready VALUES (20001, 2, 0, 0, 0, 0, 0, 0)")
    bare.set_progress_handler(lambda: steps.append(1), 100)
    given = {"worker": 1, "pool": 2, "alone": 0, "count": 100, "now": 0}
    taken = bare.execute(statement_text("claim.select_ready"), given)
    assert taken.rowcount == 1
    assert len(steps) < 10

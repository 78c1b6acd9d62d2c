"""Measures how fast a bare loop claims and completes jobs in a SQLite file.

It is to SQLite what `pgbench` is to PostgreSQL: it moves the rows of a job, in tables with the
columns and indexes of Workron. One writer moves a batch with each statement, in one durable
transaction for each batch. It uses neither an event loop nor JSON, and no row reaches Python.
"""

from __future__ import annotations

import pathlib
import sqlite3
import tempfile
import time
from typing import Final

from bench.figure import Side
from bench.limit import sqlite_rows

_SQL: Final = pathlib.Path(__file__).with_name("sql")
_LOAD: Final = "INSERT INTO ready VALUES (?, 1, 0, 0, 0, 0, 0, 0)"
_LEFT: Final = "SELECT (SELECT count(*) FROM ready) + (SELECT count(*) FROM running)"
_ENDED: Final = "SELECT count(*) FROM done JOIN attempt USING (job)"


def draining(jobs: int, *, batch: int) -> Side:
    """Measure claiming and completing a batch of jobs per transaction, in jobs a second."""

    def measure() -> float:
        with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
            return jobs / _seconds(pathlib.Path(folder) / "limit.db", jobs, batch)

    return Side(f"SQLite, one writer, claim to done, {batch} a transaction", measure)


def tables() -> str:
    """Return the statements that create the tables and their indexes."""
    return _read("sqlite_tables.sql")


def statements() -> list[str]:
    """Return the statements of each batch."""
    return _read("sqlite_take_then_end.sql").split(";")[:-1]


def _seconds(path: pathlib.Path, jobs: int, batch: int) -> float:
    connection = sqlite_rows.opened(path)
    connection.executescript(tables())
    connection.execute("BEGIN")
    connection.executemany(_LOAD, ((job,) for job in range(1, jobs + 1)))
    connection.execute("COMMIT")
    began = time.perf_counter()
    _drain(connection, -(-jobs // batch), batch)
    seconds = time.perf_counter() - began
    ((ended,), (left,)) = connection.execute(f"{_ENDED} UNION ALL {_LEFT}")
    connection.close()
    if (ended, left) != (jobs, 0):
        raise RuntimeError(f"{ended} of {jobs} jobs have ended, {left} are left")
    return seconds


def _drain(connection: sqlite3.Connection, batches: int, batch: int) -> None:
    each = statements()
    for _ in range(batches):
        given = {"now": time.time_ns() // 1000, "batch": batch}
        for statement in each:
            connection.execute(statement, given)


def _read(file: str) -> str:
    return (_SQL / file).read_text("utf-8")

"""Measures how fast this machine stores rows in a SQLite file, the minimum of any writer.

These rows are simpler than jobs: two columns, no index, and one write where a job has three.
`sqlite_jobs` moves what a job moves.
"""

from __future__ import annotations

import pathlib
import sqlite3
import tempfile
import time

from bench.figure import Side


def committing(rows: int, *, batch: int) -> Side:
    """Measure storing a batch of rows per durable transaction, in rows a second."""

    def measure() -> float:
        with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
            return rows / _seconds(pathlib.Path(folder) / "limit.db", rows, batch)

    return Side(f"one writer, {batch} bare rows of two columns a transaction", measure)


def opened(path: pathlib.Path) -> sqlite3.Connection:
    """Open a file with durable commits."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("PRAGMA synchronous = full")
    return connection


def _seconds(path: pathlib.Path, rows: int, batch: int) -> float:
    connection = opened(path)
    connection.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT)")
    began = time.perf_counter()
    for first in range(0, rows, batch):
        connection.execute("BEGIN IMMEDIATE")
        some = ((one, "succeeded") for one in range(first, first + batch))
        connection.executemany("INSERT INTO row VALUES (?, ?)", some)
        connection.execute("COMMIT")
    seconds = time.perf_counter() - began
    connection.close()
    return seconds

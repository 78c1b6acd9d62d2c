"""What this machine can do with nothing of ours in the way."""

import os
import pathlib
import shutil
import sqlite3
import time
from collections.abc import Callable

TRUE = [shutil.which("true") or "/bin/true"]
SHELL = [shutil.which("sh") or "/bin/sh", "-c", "true"]


def spawning(count: int, *, at_once: int, argv: list[str] = TRUE) -> Callable[[], float]:
    """Start processes that do nothing, so many at once, and wait for each."""

    def measure() -> float:
        began = time.perf_counter()
        running = left = 0
        while left < count:
            while running < at_once and left + running < count:
                os.posix_spawn(argv[0], argv, {})
                running += 1
            os.wait()
            running, left = running - 1, left + 1
        return count / (time.perf_counter() - began)

    return measure


def committing(folder: pathlib.Path, *, jobs: int, batch: int) -> Callable[[], float]:
    """Store rows in a SQLite file, so many a transaction, each safe on the disk when it is over."""
    path = folder / "limit.db"

    def measure() -> float:
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        connection.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT)")
        began = time.perf_counter()
        for first in range(0, jobs, batch):
            connection.execute("BEGIN IMMEDIATE")
            rows = ((one, "succeeded") for one in range(first, first + batch))
            connection.executemany("INSERT INTO row VALUES (?, ?)", rows)
            connection.execute("COMMIT")
        seconds = time.perf_counter() - began
        connection.close()
        return jobs / seconds

    return measure

"""How fast this machine stores the rows of a submission when they are ready as files.

The very rows: a submission of ours is written out first, and then read by `psql` into a database
with the same tables and indexes, in one transaction as well.
"""

from __future__ import annotations

import asyncio
import pathlib
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import Final

import asyncpg

from bench import server
from bench.figure import Side
from bench.ours import workflows
from bench.ours.workflows import Shape

_TABLES: Final = ("pool", "root", "name", "spec", "job", "edge", "waiting", "ready")
"""What a submission writes."""

_LIMIT: Final = "SET statement_timeout = '2min';\n\\echo begun\n"


def array(dsn: str, jobs: int) -> Side:
    """Copy the elements of one array, in jobs a second."""
    return _copying(dsn, jobs, workflows.ARRAY)


def flat(dsn: str, jobs: int) -> Side:
    """Copy tasks that wait for nothing, in jobs a second."""
    return _copying(dsn, jobs, workflows.FLAT)


def with_edges(dsn: str, jobs: int, edges: int) -> Side:
    """Copy tasks of which each waits for so many others, in jobs a second."""
    return _copying(dsn, jobs, workflows.EDGES[edges])


def _copying(dsn: str, jobs: int, shape: Shape) -> Side:
    title = f"`\\copy` of the same rows, {shape.title}"
    return Side(title, lambda: asyncio.run(_copy(dsn, jobs, shape)))


async def _copy(dsn: str, jobs: int, shape: Shape) -> float:
    with tempfile.TemporaryDirectory(prefix="workron-bench-") as name:
        folder = pathlib.Path(name)
        async with server.database(dsn) as url:
            tables = await written_out(url, jobs, shape, folder)
        async with server.database(dsn) as url:
            return jobs / await asyncio.to_thread(seconds, url, tables, folder)


async def written_out(url: str, jobs: int, shape: Shape, folder: pathlib.Path) -> Sequence[str]:
    """Submit, and write the rows of each table as text that COPY reads; name those with any."""
    async with workflows.opened(url) as store:
        await workflows.submitted(store, shape.read_in(jobs))
    connection = await asyncpg.connect(url)
    for table in _TABLES:
        await connection.copy_from_table(table, schema_name="workron", output=folder / table)
    await connection.close()
    return [table for table in _TABLES if (folder / table).stat().st_size]


def seconds(url: str, tables: Sequence[str], folder: pathlib.Path) -> float:
    """Read all files in one transaction; without the time that `psql` took to start."""
    copies = [f"\\copy workron.{table} FROM '{folder / table}'" for table in tables]
    script = "\n".join(["BEGIN;", *copies, "COMMIT;", "\\echo copied", ""])
    command = [server.program(url, "psql"), "-Xq", "-v", "ON_ERROR_STOP=1", url]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as psql:
        _ask(psql, _LIMIT, "begun")
        began = time.perf_counter()
        _ask(psql, script, "copied")
        ended = time.perf_counter()
        psql.communicate(timeout=10)
    return ended - began


def _ask(psql: subprocess.Popen[str], script: str, answer: str) -> None:
    assert psql.stdin is not None
    assert psql.stdout is not None
    psql.stdin.write(script)
    psql.stdin.flush()
    if psql.stdout.readline() != f"{answer}\n":
        raise RuntimeError(f"psql failed: {psql.communicate()[1]}")

"""Measures how fast this machine stores the rows of a submission that are ready as files.

The rows are those of a real submission. `psql` loads them into a database with the same tables and
indexes, also in one transaction.
"""

from __future__ import annotations

import asyncio
import functools
import io
import pathlib
import subprocess
import tempfile
import time
from collections.abc import Mapping
from typing import Final

import asyncpg

from bench import server
from bench.figure import Side
from bench.ours import workflows
from bench.ours.workflows import Shape

_TABLES: Final = ("pool", "run", "name", "spec", "job", "edge", "waiting", "ready")
"""The tables that a submission writes."""

_LIMIT: Final = "SET statement_timeout = '2min';\n\\echo begun\n"


def array(dsn: str, jobs: int) -> Side:
    """Measure copying the elements of one array, in jobs a second."""
    return _copying(dsn, jobs, workflows.ARRAY)


def flat(dsn: str, jobs: int) -> Side:
    """Measure copying tasks without dependencies, in jobs a second."""
    return _copying(dsn, jobs, workflows.FLAT)


def with_edges(dsn: str, jobs: int, edges: int) -> Side:
    """Measure copying tasks with this many upstreams each, in jobs a second."""
    return _copying(dsn, jobs, workflows.EDGES[edges])


def _copying(dsn: str, jobs: int, shape: Shape) -> Side:
    title = f"`\\copy` of the same rows, {shape.title}"
    return Side(title, lambda: jobs / asyncio.run(_copy(dsn, _written(dsn, jobs, shape))))


@functools.cache
def _written(dsn: str, jobs: int, shape: Shape) -> Mapping[str, bytes]:
    """Submit once for all rounds, and return the rows of each table as text for COPY."""
    return asyncio.run(_write(dsn, jobs, shape))


async def _write(dsn: str, jobs: int, shape: Shape) -> Mapping[str, bytes]:
    async with server.database(dsn) as url:
        async with workflows.opened(url) as store:
            await workflows.submitted(store, shape.read_in(jobs))
        connection = await asyncpg.connect(url)
        rows = {table: io.BytesIO() for table in _TABLES}
        for table, text in rows.items():
            await connection.copy_from_table(table, schema_name="workron", output=text)
        await connection.close()
    return {table: text.getvalue() for table, text in rows.items() if text.tell()}


async def _copy(dsn: str, rows: Mapping[str, bytes]) -> float:
    async with server.database(dsn) as url:
        return await asyncio.to_thread(seconds, url, rows)


def seconds(url: str, rows: Mapping[str, bytes]) -> float:
    """Copy all tables in one transaction; the seconds exclude the start of `psql`."""
    with tempfile.TemporaryDirectory(prefix="workron-bench-") as name:
        files = {table: pathlib.Path(name) / table for table in rows}
        for table, file in files.items():
            file.write_bytes(rows[table])
        copies = [f"\\copy workron.{table} FROM '{file}'" for table, file in files.items()]
        return _seconds(url, "\n".join(["BEGIN;", *copies, "COMMIT;", "\\echo copied", ""]))


def _seconds(url: str, script: str) -> float:
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

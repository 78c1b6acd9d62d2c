"""Measures how fast one worker could move from job to job if each hop were one bare round trip."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Final

import asyncpg

from bench.figure import Side
from bench.limit import tables

_TIMEOUT_SECONDS: Final = 30


def hopping(dsn: str, jobs: int) -> Side:
    """Measure completing a job and claiming the next in one statement, in hops a second."""
    title = "one connection, complete one and claim the next in one statement"
    return Side(title, lambda: asyncio.run(_hop(dsn, jobs)))


async def _hop(dsn: str, jobs: int) -> float:
    async with tables.drained(dsn, jobs) as url:
        connection = await asyncpg.connect(url, command_timeout=_TIMEOUT_SECONDS)
        try:
            return jobs / await _seconds(connection)
        finally:
            await connection.close()


async def _seconds(connection: asyncpg.Connection) -> float:
    """Hop from the first job, claimed before the clock starts, to the end of the last."""
    statement = await connection.prepare((tables.SQL / "end_and_take.sql").read_text("utf-8"))
    job = await statement.fetchrow(0, uuid.uuid4())
    began = time.perf_counter()
    while job is not None:
        job = await statement.fetchrow(*job)
    return time.perf_counter() - began

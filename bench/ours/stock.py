"""Jobs that the bench inserts directly into the tables, so that only the server does any work.

This makes a history of millions within minutes, and a feeder takes no CPU from the processes that
are measured. The rows are those of real submissions and completions.
"""

from __future__ import annotations

import pathlib
from typing import Final

import asyncpg

_SQL: Final = pathlib.Path(__file__).parent / "sql" / "rows.sql"
_JOBS: Final = 1_000
"""The number of jobs of a workflow."""
_STEP: Final = 100
"""The number of workflows that one transaction inserts."""


class Stock:
    """A connection that inserts jobs into a database, each with a higher id."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._next = 1
        self.queued = 0
        """The number of jobs that it has made ready."""

    async def open(self) -> None:
        """Create the functions; the pool `default` must exist."""
        await self._connection.execute(_SQL.read_text("utf-8"))

    async def queue(self, jobs: int) -> None:
        """Make at least this many jobs ready: workflows are inserted whole."""
        self.queued += await self._insert("queue", jobs)

    async def finish(self, jobs: int) -> None:
        """Insert this many ended jobs."""
        await self._insert("finish", jobs)

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _insert(self, what: str, jobs: int) -> int:
        workflows = -(-jobs // _JOBS)
        for first in range(0, workflows, _STEP):
            step = min(_STEP, workflows - first)
            call = f"SELECT bench.{what}($1, $2, $3)"
            await self._connection.execute(call, self._next, step, _JOBS)
            self._next += step * (_JOBS + 1)
        return workflows * _JOBS


async def opened(url: str) -> Stock:
    """Open a stock on a database with the schema of Workron."""
    connection = await asyncpg.connect(url)
    await connection.fetch("SELECT * FROM workron.ensure_pools(ARRAY['default'], ARRAY['default'])")
    stock = Stock(connection)
    await stock.open()
    return stock

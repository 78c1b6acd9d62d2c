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
"""Of a workflow."""
_STEP: Final = 100
"""So many workflows are put in by one transaction."""


class Stock:
    """One connection that puts jobs into a database, each behind all that it has put there."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._next = 1
        self.queued = 0
        """How many jobs it has made ready."""

    async def open(self) -> None:
        """Bring the functions in; the pool `default` has to be there."""
        await self._connection.execute(_SQL.read_text("utf-8"))

    async def queue(self, jobs: int) -> None:
        """Make so many jobs ready, or a few more: workflows are put in whole."""
        self.queued += await self._put("queue", jobs)

    async def finish(self, jobs: int) -> None:
        """Put in so many that have ended."""
        await self._put("finish", jobs)

    async def close(self) -> None:
        """Give the connection back."""
        await self._connection.close()

    async def _put(self, what: str, jobs: int) -> int:
        workflows = -(-jobs // _JOBS)
        for first in range(0, workflows, _STEP):
            step = min(_STEP, workflows - first)
            call = f"SELECT bench.{what}($1, $2, $3)"
            await self._connection.execute(call, self._next, step, _JOBS)
            self._next += step * (_JOBS + 1)
        return workflows * _JOBS


async def opened(url: str) -> Stock:
    """Open one on a database that has our schema."""
    connection = await asyncpg.connect(url)
    await connection.fetch("SELECT * FROM workron.ensure_pools(ARRAY['default'], ARRAY['default'])")
    stock = Stock(connection)
    await stock.open()
    return stock

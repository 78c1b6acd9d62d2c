"""Ready jobs in tables of the bench, for loops that claim them without Workron.

The SQL in `sql/` does not change with that of the product, so that limits stay comparable.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import AsyncIterator
from typing import Final

import asyncpg

from bench import server

SQL: Final = pathlib.Path(__file__).with_name("sql")
_LOAD: Final = (
    "INSERT INTO ready (job, pool, priority) SELECT n, 1, 0 FROM generate_series(1, $1) n"
)
_LEFT: Final = "SELECT (SELECT count(*) FROM ready) + (SELECT count(*) FROM running)"
_ENDED: Final = "SELECT count(*) FROM done JOIN attempt USING (job)"


@contextlib.asynccontextmanager
async def drained(dsn: str, jobs: int) -> AsyncIterator[str]:
    """Yield a database with ready jobs, and check afterwards that all have ended."""
    async with server.empty(dsn) as url:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute((SQL / "tables.sql").read_text("utf-8"))
            await connection.execute(_LOAD, jobs)
            await connection.execute("VACUUM ANALYZE")
            yield url
            ended, left = await connection.fetchval(_ENDED), await connection.fetchval(_LEFT)
        finally:
            await connection.close()
    if (ended, left) != (jobs, 0):
        raise RuntimeError(f"{ended} of {jobs} jobs have ended, {left} are left")

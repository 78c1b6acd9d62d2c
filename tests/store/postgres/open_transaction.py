"""Helpers of the tests of long transactions: a stopped clock, many jobs, and counters."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.store.behaviour.worker import MANY, report_on
from tests.store.postgres.stage import Actor, Stage, WorkerActor

BATCHES: Final = 8
_TRUST: Final = """
    SELECT set_config(
        'workron.unread_' || $1::text,
        concat_ws(' ', 0, pg_relation_size(('workron.' || $1)::regclass) / 8192, now, now + 60),
        false)
    FROM extract(epoch FROM workron.now()) AS now
"""
_CLOCK: Final = r"clock_timestamp\(\)"


class StoppedClock:
    """The clock of a stage's database, which only the test advances."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._now = datetime.now(UTC)

    async def advance(self, seconds: float = 0.0) -> None:
        self._now += timedelta(seconds=seconds)
        await self._stage.replace("now", _CLOCK, f"timestamptz '{self._now.isoformat()}'")


async def work(worker: WorkerActor, batches: int = BATCHES, batch: int = MANY) -> None:
    """Claim and complete many jobs."""
    for _ in range(batches):
        claimed = await worker.claim(batch)
        assert len(claimed) == batch
        await worker.store.complete(worker.session.key, [report_on(one) for one in claimed])


async def index_entries_read(actor: Actor, index: str) -> int:
    """Count the entries of an index that this actor and ended sessions have read."""
    await actor.connection.execute("SELECT pg_stat_force_next_flush()")
    count = await actor.connection.fetchval(
        "SELECT pg_stat_get_tuples_returned($1::text::regclass)", f"workron.{index}"
    )
    return int(count)


@contextlib.asynccontextmanager
async def pages(actor: Actor, relation: str) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """Put an actor into one transaction, and count the pages that it reads of one relation."""

    async def read() -> int:
        statement = "SELECT pg_stat_get_xact_blocks_fetched($1::text::regclass)"
        return int(await actor.connection.fetchval(statement, f"workron.{relation}"))

    await actor.begin()
    before = await read()

    async def count() -> int:
        return await read() - before

    yield count
    await actor.commit()


async def trust(actor: Actor, table: str, clock: StoppedClock) -> None:
    """Let an actor read only new pages of a table for a minute, as after a long full read.

    The present pages count as new once more.
    """
    await actor.connection.execute(_TRUST, table)
    await clock.advance(6)

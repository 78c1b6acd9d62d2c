"""What the tests of long transactions share: a clock that stands, and much that comes and goes."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.store.behaviour.worker import MANY, report_on
from tests.store.postgres.stage import Actor, Hand, Stage

BATCHES: Final = 8
_TRUST: Final = """
    SELECT set_config(
        'workron.unread_' || $1::text,
        concat_ws(' ', 0, pg_relation_size(('workron.' || $1)::regclass) / 8192, now, now + 60),
        false)
    FROM extract(epoch FROM workron.now()) AS now
"""
_CLOCK: Final = r"clock_timestamp\(\)"


class StillClock:
    """The clock of a stage's database, which goes on only as it is told."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._now = datetime.now(UTC)

    async def go_on(self, seconds: float = 0.0) -> None:
        self._now += timedelta(seconds=seconds)
        await self._stage.replace("now", _CLOCK, f"timestamptz '{self._now.isoformat()}'")


async def work(worker: Hand, batches: int = BATCHES, batch: int = MANY) -> None:
    """Claim and end much."""
    for _ in range(batches):
        claimed = await worker.claim(batch)
        assert len(claimed) == batch
        await worker.store.complete(worker.session.key, [report_on(one) for one in claimed])


async def entries_read(actor: Actor, index: str) -> int:
    """Count the entries of an index that were read, by an actor and by those that have left."""
    await actor.connection.execute("SELECT pg_stat_force_next_flush()")
    count = await actor.connection.fetchval(
        "SELECT pg_stat_get_tuples_returned($1::text::regclass)", f"workron.{index}"
    )
    return int(count)


@contextlib.asynccontextmanager
async def pages(actor: Actor, relation: str) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """Have an actor do all this in one transaction, and count what it reads of one relation."""

    async def read() -> int:
        statement = "SELECT pg_stat_get_xact_blocks_fetched($1::text::regclass)"
        return int(await actor.connection.fetchval(statement, f"workron.{relation}"))

    await actor.begin()
    before = await read()

    async def count() -> int:
        return await read() - before

    yield count
    await actor.commit()


async def trust(actor: Actor, table: str, clock: StillClock) -> None:
    """Have an actor read only new pages of a table for a minute, as after it has read very many.

    It has still to read all of them once more.
    """
    await actor.connection.execute(_TRUST, table)
    await clock.go_on(6)

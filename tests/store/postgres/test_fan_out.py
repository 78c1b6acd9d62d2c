"""The ends of many jobs that one upstream freed do not each walk over all that it freed."""

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import end_of
from tests.store.postgres.stage import Hand, Stage

_WIDE = 1_000
_ENDS = 10


async def _edges_read(worker: Hand) -> int:
    """Count the rows of edges that were read so far, by whichever index."""
    await worker.store.connection.execute("SELECT pg_stat_force_next_flush()")
    count = await worker.store.connection.fetchval(
        "SELECT sum(pg_stat_get_tuples_returned(indexrelid))::bigint FROM pg_index"
        " WHERE indrelid = 'workron.edge'::regclass"
    )
    return int(count)


async def test_ends_look_for_their_own_edges_whatever_the_statistics_say(stage: Stage) -> None:
    await stage.submit(plans.dag(first=task(), many=task("first", count=_WIDE)))
    worker = await stage.worker()
    [first] = await worker.claim(1)
    await worker.store.complete(worker.session.key, [end_of(first)])
    await stage.sql.execute("ANALYZE workron.edge")
    claimed = await worker.claim(_ENDS)
    assert len(claimed) == _ENDS
    before = await _edges_read(worker)
    await worker.store.complete(worker.session.key, [end_of(one) for one in claimed])
    assert await _edges_read(worker) - before <= _ENDS

"""A transaction that somebody leaves open slows neither claims nor beats.

What ends meanwhile leaves its entries in the indexes, and no scan may remove them.
"""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY, end_of
from tests.store.postgres.stage import Hand, Stage
from workron.core import errors

_BATCHES = 8
_GONE = """
    INSERT INTO workron.ready (job, pool, priority)
    SELECT -number, id, 0 FROM workron.pool CROSS JOIN generate_series(1, 400000) AS number;
    DELETE FROM workron.ready;
"""
_OVER = """
    SELECT workron.set_mark(id, priority, job, 1)
    FROM workron.pool CROSS JOIN LATERAL workron.mark(id) WHERE job IS NOT NULL
"""


@pytest.fixture
async def still(stage: Stage) -> None:
    """Let no time pass, so that no mark runs out by itself."""
    now = await stage.sql.fetchval("SELECT clock_timestamp()::text")
    await stage.replace("now", r"clock_timestamp\(\)", f"timestamptz '{now}'")


@pytest.fixture
async def held(stage: Stage, still: None) -> AsyncIterator[None]:
    """Have somebody hold a snapshot of before all that the test does."""
    holder = await asyncpg.connect(stage.dsn)
    await holder.execute(
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM workron.ready"
    )
    yield
    await holder.close()


async def _work(worker: Hand, batches: int = _BATCHES, batch: int = MANY) -> None:
    """Claim and end much."""
    for _ in range(batches):
        claimed = await worker.claim(batch)
        assert len(claimed) == batch
        await worker.store.complete(worker.session.key, [end_of(one) for one in claimed])


async def _read(worker: Hand, index: str) -> int:
    """Count the entries of an index that were read so far."""
    await worker.store.connection.execute("SELECT pg_stat_force_next_flush()")
    count = await worker.store.connection.fetchval(
        "SELECT pg_stat_get_tuples_returned($1::text::regclass)", f"workron.{index}"
    )
    return int(count)


@pytest.mark.usefixtures("held")
async def test_claim_does_not_pass_again_what_an_earlier_one_has_passed(stage: Stage) -> None:
    await stage.submit(plans.array((_BATCHES + 1) * MANY))
    worker = await stage.worker()
    await _work(worker)
    before = await _read(worker, "ready_walk")
    await _work(worker, batches=10, batch=10)
    assert await _read(worker, "ready_walk") - before < 10 * 100


@pytest.mark.usefixtures("still")
async def test_claim_does_not_pass_again_what_is_dead_by_the_page(stage: Stage) -> None:
    worker = await stage.worker()
    await stage.sql.execute(_GONE)
    await stage.submit(plans.array(20))
    pages = "SELECT pg_stat_get_xact_blocks_fetched('workron.ready_walk'::regclass)"
    # The first marks each entry as dead, and its mark runs out.
    await worker.claim(1)
    await worker.store.connection.execute(_OVER)
    await worker.claim(1)
    async with worker.store.connection.transaction():
        before = await worker.store.connection.fetchval(pages)
        assert len(await worker.claim(1)) == 1
        assert await worker.store.connection.fetchval(pages) - before < 100


@pytest.mark.usefixtures("held")
async def test_beat_does_not_look_through_all_that_a_worker_has_held(stage: Stage) -> None:
    await stage.submit(plans.array(_BATCHES * MANY))
    worker = await stage.worker()
    await _work(worker)
    for _ in range(4):
        await worker.beat()
    before = await _read(worker, "running_worker")
    for _ in range(4):
        await worker.beat()
    assert await _read(worker, "running_worker") - before < 100


@pytest.mark.usefixtures("held")
async def test_beat_tells_of_the_oldest_claim_whatever_came_and_went_after_it(stage: Stage) -> None:
    await stage.submit(plans.array(30))
    worker = await stage.worker()
    for _ in range(5):
        await worker.beat()
    oldest = await worker.claim_one()
    for _ in range(20):
        await worker.end(await worker.claim_one())
        assert [one.claim for one in (await worker.beat()).held] == [oldest.claim]


@pytest.mark.usefixtures("held")
async def test_what_an_end_frees_is_found_by_who_told_of_it(stage: Stage) -> None:
    await stage.submit(plans.dag("first", one=plans.task(), two=plans.task("one")))
    worker = await stage.worker()
    first = await worker.claim_one()
    await stage.submit(plans.array((_BATCHES + 1) * MANY))
    await _work(worker)
    await worker.end(first)
    assert (await worker.claim_one()).name == "two"


@pytest.mark.usefixtures("held")
async def test_what_came_before_the_mark_is_found_when_the_mark_is_over(stage: Stage) -> None:
    await stage.submit(plans.array((_BATCHES + 1) * MANY))
    worker = await stage.worker()
    await _work(worker)
    await stage.submit(plans.job("urgent", priority=5))
    assert (await worker.claim_one()).name != "urgent"
    await worker.store.connection.execute(_OVER)
    assert (await worker.claim_one()).name == "urgent"


@pytest.mark.usefixtures("held")
async def test_what_an_end_frees_is_found_by_who_told_of_it_also_if_it_is_more_urgent(
    stage: Stage,
) -> None:
    await stage.submit(plans.job("up"))
    await stage.submit(plans.job("down", priority=5, outside=[plans.outside("up")]))
    worker = await stage.worker()
    first = await worker.claim_one()
    await stage.submit(plans.array((_BATCHES + 1) * MANY))
    await _work(worker)
    await worker.end(first)
    assert (await worker.claim_one()).name == "down"


@pytest.mark.usefixtures("held")
async def test_walk_that_goes_on_at_a_lower_priority_is_remembered_too(stage: Stage) -> None:
    urgent = {"priority": 1}
    await stage.submit(plans.dag("high", urgent, work=plans.task(count=_BATCHES * MANY)))
    await stage.submit(plans.array(4 * MANY))
    worker = await stage.worker()
    await _work(worker, batch=MANY - 1)
    # The last of one priority, and the first of the next, in one claim.
    await _work(worker, batches=3)
    before = await _read(worker, "ready_walk")
    await _work(worker, batches=10, batch=10)
    assert await _read(worker, "ready_walk") - before < 10 * 100


@pytest.mark.usefixtures("held")
async def test_mark_of_before_the_clock_was_put_back_holds_no_more(stage: Stage) -> None:
    await stage.submit(plans.array(3))
    worker = await stage.worker()
    mark = "SELECT workron.set_mark(id, 0, 9223372036854775806, extract(epoch FROM now()) + 3600)"
    await worker.store.connection.execute(f"{mark} FROM workron.pool")
    assert len(await worker.claim(3)) == 3


async def test_worker_that_finds_nothing_writes_nothing(stage: Stage) -> None:
    worker = await stage.worker()
    number = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
    before = await stage.sql.fetchval(number)
    assert not await worker.claim()
    assert await stage.sql.fetchval(number) == before


async def test_worker_that_was_taken_back_is_told_so_where_nothing_is_ready(stage: Stage) -> None:
    worker = await stage.worker()
    await worker.store.leave(worker.session.key)
    with pytest.raises(errors.SessionError):
        await worker.claim()

"""Claims do not read the index entries of jobs that were claimed before, and find every ready job.

A transaction that stays open keeps those entries in the index.
"""

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY
from tests.store.postgres.open_transaction import BATCHES, StoppedClock, index_entries_read, work
from tests.store.postgres.stage import Stage, WorkerActor
from workron.core.plan import Plan

_FEW = 100
_STARTS = "SELECT count(*) FROM workron.scan_start"
_FLUSH = "SELECT pg_stat_force_next_flush()"
_NEXT_TRANSACTION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"


def _urgent() -> Plan:
    return plans.job("urgent", priority=5)


async def _refresh(stage: Stage, worker: WorkerActor) -> None:
    """Refresh the scan starts, once the server has counted the rows that a worker deleted."""
    await worker.store.connection.execute(_FLUSH)
    await stage.sql.execute("SELECT workron.refresh_scan_starts(0)")
    # Otherwise the server adds what the refresh has read to a later count.
    await stage.sql.execute(_FLUSH)


async def _after_work(stage: Stage, ready: int = 0) -> WorkerActor:
    """Return a worker that has claimed thousands of jobs of its pool, which has this many more."""
    # Autovacuum replaces the count of dead rows by an estimate.
    await stage.sql.execute("ALTER TABLE workron.ready SET (autovacuum_enabled = off)")
    await stage.submit(plans.array(BATCHES * MANY + ready))
    worker = await stage.worker("busy")
    await work(worker)
    await _refresh(stage, worker)
    return worker


@pytest.mark.usefixtures("held")
async def test_claim_does_not_read_claimed_jobs_when_the_start_was_refreshed(stage: Stage) -> None:
    worker = await _after_work(stage, ready=MANY)
    before = await index_entries_read(worker.store, "ready_claim_order")
    await work(worker, batches=5, batch=1)
    assert await index_entries_read(worker.store, "ready_claim_order") - before < _FEW


@pytest.mark.usefixtures("held")
async def test_claim_reads_few_entries_when_the_start_is_at_a_lower_priority(stage: Stage) -> None:
    await stage.submit(plans.dag("high", {"priority": 1}, work=plans.task(count=4 * MANY)))
    worker = await _after_work(stage, ready=MANY)
    before = await index_entries_read(worker.store, "ready_claim_order")
    await stage.submit(plans.job("low", priority=-1))
    await _refresh(stage, worker)
    await work(worker, batches=1, batch=10)
    assert await index_entries_read(worker.store, "ready_claim_order") - before < 5 * MANY


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("is_new", [True, False])
async def test_claim_reads_no_claimed_jobs_when_no_job_is_ready(
    stage: Stage, *, is_new: bool
) -> None:
    worker = await _after_work(stage)
    if is_new:
        worker = await stage.worker("new")
    before = await index_entries_read(worker.store, "ready_claim_order")
    number = await stage.sql.fetchval(_NEXT_TRANSACTION)
    for _ in range(10):
        assert not await worker.claim()
    assert await stage.sql.fetchval(_NEXT_TRANSACTION) == number
    assert await index_entries_read(worker.store, "ready_claim_order") - before < _FEW


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("priority", [5, 0, -5])
@pytest.mark.parametrize("count", [1, MANY])
async def test_job_is_claimed_at_once_when_no_other_is_ready(
    stage: Stage, priority: int, count: int
) -> None:
    worker = await _after_work(stage)
    for name in ("one", "two"):
        work = plans.task(count=count)
        run = await stage.submit(plans.dag(name, {"priority": priority}, work=work))
        claimed = await worker.claim(MANY + 1)
        assert [job.job for job in claimed] == list(range(run + 2, run + 2 + count))


@pytest.mark.usefixtures("held")
async def test_jobs_before_the_start_are_claimed_by_priority_when_none_follows_it(
    stage: Stage,
) -> None:
    worker = await _after_work(stage)
    await stage.submit(plans.job("later"))
    await stage.submit(_urgent())
    assert [(await worker.claim_one()).name for _ in range(2)] == ["urgent", "later"]


@pytest.mark.usefixtures("held")
async def test_urgent_job_is_claimed_first_when_the_start_was_refreshed(stage: Stage) -> None:
    worker = await _after_work(stage, ready=MANY)
    await stage.submit(plans.dag("high", {"priority": 5}, urgent=plans.task(count=30)))
    assert (await worker.claim_one()).run != "high"
    await _refresh(stage, worker)
    for _ in range(3):
        assert {job.run for job in await worker.claim(10)} == {"high"}
    assert (await worker.claim_one()).run != "high"


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("count", [1, MANY])
async def test_urgent_job_is_claimed_first_when_its_transaction_was_open_during_refreshes(
    stage: Stage, count: int
) -> None:
    worker = await _after_work(stage, ready=MANY)
    user = await stage.actor()
    await user.begin()
    await user.submit([plans.dag("high", {"priority": 5}, urgent=plans.task(count=count))])
    for _ in range(2):
        # Later transactions end in between.
        await stage.submit(plans.job("other", priority=-5))
        await worker.claim_one()
        await _refresh(stage, worker)
    await user.commit()
    await _refresh(stage, worker)
    claimed = await worker.claim(count + 1)
    assert [job.run == "high" for job in claimed] == [True] * count + [False]


@pytest.mark.usefixtures("held")
async def test_first_job_is_claimed_when_a_claim_is_rolled_back_after_a_refresh(
    stage: Stage,
) -> None:
    worker = await _after_work(stage, ready=MANY)
    other = await stage.twin(worker)
    await other.begin()
    first = await other.claim_one()
    await _refresh(stage, worker)
    await other.store.rollback()
    assert (await worker.claim_one()).job == first.job


@pytest.mark.usefixtures("held")
async def test_job_is_claimed_first_when_its_priority_was_raised(stage: Stage) -> None:
    worker = await _after_work(stage, ready=MANY)
    run = await stage.submit(plans.job("late"))
    await _refresh(stage, worker)
    await stage.sql.execute("INSERT INTO workron.bulk_update (run, priority) VALUES ($1, 5)", run)
    await stage.sql.execute("SELECT workron.bulk_update_step($1, 10)", run)
    await _refresh(stage, worker)
    assert (await worker.claim_one()).name == "late"


async def test_unblocked_job_is_claimed_in_order_when_the_start_was_refreshed(
    stage: Stage, held: StoppedClock
) -> None:
    await stage.submit(plans.dag("first", one=plans.task(), two=plans.task("one")))
    worker = await stage.worker()
    first = await worker.claim_one()
    await held.advance(1)
    await _after_work(stage, ready=MANY)
    await worker.end(first)
    await _refresh(stage, worker)
    assert (await worker.claim_one()).name == "two"


@pytest.mark.usefixtures("held")
async def test_job_is_claimed_when_its_own_transaction_was_open_in_the_last_refresh(
    stage: Stage,
) -> None:
    await stage.submit(plans.dag("first", one=plans.task(), two=plans.task("one")))
    worker = await stage.worker()
    first = await worker.claim_one()
    other = await _after_work(stage)
    await worker.begin()
    await worker.end(first)
    # Another transaction ends, so that the open one is within the snapshot's limits.
    await stage.submit(plans.job("later", pool="other"))
    await _refresh(stage, other)
    assert (await worker.claim_one()).name == "two"


@pytest.mark.parametrize("seconds", [6, -3600])
async def test_claim_reads_from_the_beginning_when_the_start_is_not_refreshed(
    stage: Stage, held: StoppedClock, seconds: float
) -> None:
    worker = await _after_work(stage, ready=MANY)
    await stage.submit(_urgent())
    await held.advance(seconds)
    assert (await worker.claim_one()).name == "urgent"


@pytest.mark.usefixtures("stopped_clock")
async def test_start_is_removed_when_vacuum_has_removed_the_dead_rows(stage: Stage) -> None:
    worker = await _after_work(stage, ready=MANY)
    await stage.sql.execute("VACUUM workron.ready")
    await _refresh(stage, worker)
    assert await stage.sql.fetchval(_STARTS) == 0
    await stage.submit(_urgent())
    assert (await worker.claim_one()).name == "urgent"


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("count", [1, 3])
async def test_claim_does_not_read_claimed_jobs_when_urgent_ones_were_claimed(
    stage: Stage, count: int
) -> None:
    worker = await _after_work(stage, ready=MANY)
    await stage.submit(plans.dag("high", {"priority": 5}, urgent=plans.task(count=count)))
    await _refresh(stage, worker)
    before = await index_entries_read(worker.store, "ready_claim_order")
    assert {(await worker.claim_one()).run for _ in range(count)} == {"high"}
    assert (await worker.claim_one()).run != "high"
    await work(worker, batches=5, batch=1)
    assert await index_entries_read(worker.store, "ready_claim_order") - before < _FEW


@pytest.mark.usefixtures("held")
async def test_urgent_jobs_are_claimed_first_when_they_are_too_many_for_the_list(
    stage: Stage,
) -> None:
    worker = await _after_work(stage, ready=MANY)
    await stage.submit(_urgent())
    await _refresh(stage, worker)
    await stage.submit(plans.dag("high", {"priority": 5}, urgent=plans.task(count=150)))
    await _refresh(stage, worker)
    assert await stage.sql.fetchval("SELECT early FROM workron.scan_start") == []
    claimed = await worker.claim(151)
    assert {job.run for job in claimed} == {"high", "urgent"}
    assert (await worker.claim_one()).run not in {"high", "urgent"}


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("is_refreshed", [True, False])
async def test_claim_finds_a_job_before_the_start_when_another_claim_has_locked_the_first(
    stage: Stage, *, is_refreshed: bool
) -> None:
    worker = await _after_work(stage)
    other = await stage.worker("other")
    await stage.submit(plans.array(2, "late"))
    if is_refreshed:
        await _refresh(stage, worker)
    await other.begin()
    first = await other.claim_one()
    assert (await worker.claim_one()).job != first.job


@pytest.mark.usefixtures("held")
async def test_claim_and_refresh_read_no_entries_when_a_submission_to_another_pool_is_open(
    stage: Stage,
) -> None:
    worker = await _after_work(stage)
    user = await stage.actor()
    await user.begin()
    await user.submit([plans.array(MANY // 2, "elsewhere", pool="other")])
    before = await index_entries_read(worker.store, "ready_inserted_by")
    assert not await worker.claim()
    await _refresh(stage, worker)
    assert await index_entries_read(stage.watcher, "ready_inserted_by") == before


@pytest.mark.usefixtures("held")
async def test_claim_and_refresh_read_few_entries_when_a_submission_was_open_in_the_last_refresh(
    stage: Stage,
) -> None:
    worker = await _after_work(stage)
    user = await stage.actor()
    await user.begin()
    await user.submit([plans.array(MANY // 2, "late")])
    # Another transaction ends, so that the open one is within the snapshot's limits.
    await stage.submit(plans.job("later", pool="other"))
    await _refresh(stage, worker)
    before = await index_entries_read(stage.watcher, "ready_inserted_by")
    assert not await worker.claim()
    await _refresh(stage, worker)
    assert await index_entries_read(worker.store, "ready_inserted_by") - before < _FEW
    assert await index_entries_read(stage.watcher, "ready_inserted_by") - before < _FEW
    await user.commit()
    assert len(await worker.claim(MANY)) == MANY // 2


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("is_refreshed", [True, False])
async def test_every_job_before_the_start_is_claimed_when_one_was_released(
    stage: Stage, *, is_refreshed: bool
) -> None:
    worker = await _after_work(stage)
    count = 2 if is_refreshed else MANY
    await stage.submit(plans.array(count, "late"))
    if is_refreshed:
        await _refresh(stage, worker)
    await worker.release(await worker.claim_one())
    if is_refreshed:
        await _refresh(stage, worker)
    assert len(await worker.claim(count)) == count


@pytest.mark.usefixtures("held")
async def test_promotion_does_not_wait_when_a_refresh_is_locked_out(stage: Stage) -> None:
    await _after_work(stage)
    other = await stage.actor()
    await other.begin()
    await other.connection.execute("LOCK TABLE workron.scan_start")
    promoter = await stage.actor()
    promoting = await stage.start(promoter, promoter.promote(MANY))
    assert promoting.done()


@pytest.mark.usefixtures("held")
async def test_refresh_goes_on_with_the_next_pool_when_the_last_one_read_many_entries(
    stage: Stage,
) -> None:
    await _after_work(stage)
    await stage.watcher.ensure_pool(plans.NAMESPACE, "other")
    await stage.replace("refresh_scan_starts", "1000000", "1000")
    await stage.sql.execute("DELETE FROM workron.scan_start")
    pools = [row["id"] for row in await stage.sql.fetch("SELECT id FROM workron.pool ORDER BY id")]
    maintainer = await stage.actor()
    for last in (pools[0], 0):
        await maintainer.refresh_scan_starts()
        assert maintainer.refreshed_pool == last


@pytest.mark.usefixtures("held")
async def test_claim_reads_few_entries_when_a_large_run_of_another_pool_was_submitted(
    stage: Stage,
) -> None:
    worker = await _after_work(stage)
    before = await index_entries_read(worker.store, "ready_claim_order")
    await stage.submit(plans.array(MANY, "elsewhere", pool="other"))
    assert not await worker.claim()
    await _refresh(stage, worker)
    assert await index_entries_read(worker.store, "ready_claim_order") - before < _FEW
    assert await stage.sql.fetchval("SELECT count(inserted_by) FROM workron.ready") == 0


async def test_pool_has_no_start_when_few_jobs_were_claimed(stage: Stage) -> None:
    await stage.submit(plans.array(MANY))
    worker = await stage.worker()
    await work(worker, batches=1)
    await _refresh(stage, worker)
    assert await stage.sql.fetchval(_STARTS) == 0

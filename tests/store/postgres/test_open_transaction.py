"""A transaction that stays open slows neither heartbeats nor the propagation of ends.

Rows that are deleted meanwhile stay in the tables as dead rows. For claims see
test_scan_start.py.
"""

from collections.abc import Sequence

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY
from tests.store.postgres.open_transaction import (
    BATCHES,
    StoppedClock,
    index_entries_read,
    pages,
    trust,
    work,
)
from tests.store.postgres.stage import Actor, Stage
from workron.core import errors
from workron.core.ids import JobId

_INSERT = {
    "unpropagated": "INSERT INTO workron.unpropagated SELECT -generate_series(1, 50000)",
    "pending_end": """
        INSERT INTO workron.pending_end (job, count, verdict)
        SELECT -generate_series(1, 50000), 1, 0
    """,
}


async def _insert_and_delete(stage: Stage, table: str) -> None:
    """Insert and delete many rows."""
    await stage.sql.execute(f"{_INSERT[table]}; DELETE FROM workron.{table} WHERE job < 0")


@pytest.mark.usefixtures("held")
async def test_heartbeat_reads_few_entries_when_the_worker_held_many_claims(stage: Stage) -> None:
    await stage.submit(plans.array(BATCHES * MANY))
    worker = await stage.worker()
    await work(worker)
    for _ in range(4):
        await worker.heartbeat()
    before = await index_entries_read(worker.store, "running_worker")
    for _ in range(4):
        await worker.heartbeat()
    assert await index_entries_read(worker.store, "running_worker") - before < 100


@pytest.mark.usefixtures("held")
async def test_heartbeat_returns_the_oldest_claim_when_later_ones_ended(stage: Stage) -> None:
    await stage.submit(plans.array(30))
    worker = await stage.worker()
    for _ in range(5):
        await worker.heartbeat()
    oldest = await worker.claim_one()
    for _ in range(20):
        await worker.end(await worker.claim_one())
        assert [one.claim for one in (await worker.heartbeat()).held] == [oldest.claim]


@pytest.mark.parametrize("table", ["unpropagated", "pending_end"])
async def test_propagate_reads_few_pages_when_many_rows_were_deleted(
    stage: Stage, held: StoppedClock, table: str
) -> None:
    await _insert_and_delete(stage, table)
    await stage.watcher.propagate(MANY)
    await held.advance(6)
    await stage.watcher.propagate(MANY)
    async with pages(stage.watcher, table) as read:
        for _ in range(10):
            await stage.watcher.propagate(MANY)
        assert await read() < 100


async def test_ends_are_propagated_when_one_step_leaves_some(
    stage: Stage, held: StoppedClock
) -> None:
    down = plans.task("up", count=3)
    run = await stage.submit(plans.dag("all", up=plans.task(), down=down))
    worker = await stage.worker()
    await worker.fail(await worker.claim_one())
    await stage.watcher.propagate(1)
    await _insert_and_delete(stage, "unpropagated")
    await trust(stage.watcher, "unpropagated", held)
    for _ in range(8):
        await stage.watcher.propagate(1)
        await held.advance(6)
    assert (await stage.states(run))["all"] == "Failed/MemberFailed"


async def _pending_ends(stage: Stage, *names: str) -> tuple[Actor, Sequence[JobId]]:
    """Return an actor with a lock on these arrays, and their runs; their elements have ended."""
    runs = [await stage.submit(plans.array(2, name)) for name in names]
    worker, holder = await stage.worker(), await stage.actor()
    claimed = await worker.claim(2 * len(names))
    await holder.begin()
    await holder.connection.execute("SELECT 1 FROM workron.waiting FOR UPDATE")
    for one in claimed:
        await worker.end(one)
    await _insert_and_delete(stage, "pending_end")
    return holder, runs


async def test_pending_ends_are_applied_when_the_lock_on_their_array_ends(
    stage: Stage, held: StoppedClock
) -> None:
    holder, [run] = await _pending_ends(stage, "one")
    await trust(stage.watcher, "pending_end", held)
    for _ in range(3):
        await stage.watcher.propagate(MANY)
        await held.advance(6)
    await holder.rollback()
    for _ in range(3):
        await stage.watcher.propagate(MANY)
    assert set((await stage.states(run)).values()) == {"Succeeded"}


async def test_pending_ends_are_applied_when_one_step_leaves_some(
    stage: Stage, held: StoppedClock
) -> None:
    holder, runs = await _pending_ends(stage, "one", "two", "three")
    await holder.rollback()
    await trust(stage.watcher, "pending_end", held)
    for _ in range(10):
        await stage.watcher.propagate(1)
        await held.advance(6)
    for run in runs:
        assert set((await stage.states(run)).values()) == {"Succeeded"}


async def test_claim_writes_nothing_when_no_job_is_ready(stage: Stage) -> None:
    worker = await stage.worker()
    number = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
    before = await stage.sql.fetchval(number)
    assert not await worker.claim()
    assert await stage.sql.fetchval(number) == before


async def test_claim_is_refused_when_the_session_ended_and_no_job_is_ready(stage: Stage) -> None:
    worker = await stage.worker()
    await worker.store.deregister(worker.session.key)
    with pytest.raises(errors.SessionError):
        await worker.claim()

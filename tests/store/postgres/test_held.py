"""A transaction that somebody leaves open slows neither beats nor what is passed on.

What ends meanwhile leaves its rows in the tables, and no scan may remove them. How claims pass them
is in test_mark.py.
"""

from collections.abc import Sequence

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY
from tests.store.postgres.stage import Actor, Stage
from tests.store.postgres.standstill import BATCHES, StillClock, entries_read, pages, trust, work
from workron.core import errors
from workron.core.ids import JobId

_GONE = {
    "unpropagated": "INSERT INTO workron.unpropagated SELECT -generate_series(1, 50000)",
    "pending_end": """
        INSERT INTO workron.pending_end (job, count, verdict)
        SELECT -generate_series(1, 50000), 1, 0
    """,
}


async def _pass_by(stage: Stage, table: str) -> None:
    """Have much come and go."""
    await stage.sql.execute(f"{_GONE[table]}; DELETE FROM workron.{table} WHERE job < 0")


@pytest.mark.usefixtures("held")
async def test_beat_does_not_look_through_all_that_a_worker_has_held(stage: Stage) -> None:
    await stage.submit(plans.array(BATCHES * MANY))
    worker = await stage.worker()
    await work(worker)
    for _ in range(4):
        await worker.heartbeat()
    before = await entries_read(worker.store, "running_worker")
    for _ in range(4):
        await worker.heartbeat()
    assert await entries_read(worker.store, "running_worker") - before < 100


@pytest.mark.usefixtures("held")
async def test_beat_tells_of_the_oldest_claim_whatever_came_and_went_after_it(stage: Stage) -> None:
    await stage.submit(plans.array(30))
    worker = await stage.worker()
    for _ in range(5):
        await worker.heartbeat()
    oldest = await worker.claim_one()
    for _ in range(20):
        await worker.end(await worker.claim_one())
        assert [one.claim for one in (await worker.heartbeat()).held] == [oldest.claim]


@pytest.mark.parametrize("table", ["unpropagated", "pending_end"])
async def test_settling_does_not_read_again_what_is_gone(
    stage: Stage, held: StillClock, table: str
) -> None:
    await _pass_by(stage, table)
    await stage.watcher.propagate(MANY)
    await held.go_on(6)
    await stage.watcher.propagate(MANY)
    async with pages(stage.watcher, table) as read:
        for _ in range(10):
            await stage.watcher.propagate(MANY)
        assert await read() < 100


async def test_what_one_step_of_settling_leaves_is_passed_on_by_the_next_ones(
    stage: Stage, held: StillClock
) -> None:
    down = plans.task("up", count=3)
    run = await stage.submit(plans.dag("all", up=plans.task(), down=down))
    worker = await stage.worker()
    await worker.fail(await worker.claim_one())
    await stage.watcher.propagate(1)
    await _pass_by(stage, "unpropagated")
    await trust(stage.watcher, "unpropagated", held)
    for _ in range(8):
        await stage.watcher.propagate(1)
        await held.go_on(6)
    assert (await stage.stands(run))["all"] == "Failed/MemberFailed"


async def _arrived(stage: Stage, *names: str) -> tuple[Actor, Sequence[JobId]]:
    """Give who has a lock on these arrays, and their runs; all elements have ended meanwhile."""
    runs = [await stage.submit(plans.array(2, name)) for name in names]
    worker, holder = await stage.worker(), await stage.actor()
    claimed = await worker.claim(2 * len(names))
    await holder.begin()
    await holder.connection.execute("SELECT 1 FROM workron.waiting FOR UPDATE")
    for one in claimed:
        await worker.end(one)
    await _pass_by(stage, "pending_end")
    return holder, runs


async def test_what_arrives_at_a_locked_array_is_summed_when_the_lock_is_gone(
    stage: Stage, held: StillClock
) -> None:
    holder, [run] = await _arrived(stage, "one")
    await trust(stage.watcher, "pending_end", held)
    for _ in range(3):
        await stage.watcher.propagate(MANY)
        await held.go_on(6)
    await holder.rollback()
    for _ in range(3):
        await stage.watcher.propagate(MANY)
    assert set((await stage.stands(run)).values()) == {"Succeeded"}


async def test_arrivals_that_one_step_leaves_are_summed_by_the_next_ones(
    stage: Stage, held: StillClock
) -> None:
    holder, runs = await _arrived(stage, "one", "two", "three")
    await holder.rollback()
    await trust(stage.watcher, "pending_end", held)
    for _ in range(10):
        await stage.watcher.propagate(1)
        await held.go_on(6)
    for run in runs:
        assert set((await stage.stands(run)).values()) == {"Succeeded"}


async def test_worker_that_finds_nothing_writes_nothing(stage: Stage) -> None:
    worker = await stage.worker()
    number = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
    before = await stage.sql.fetchval(number)
    assert not await worker.claim()
    assert await stage.sql.fetchval(number) == before


async def test_worker_that_was_taken_back_is_told_so_where_nothing_is_ready(stage: Stage) -> None:
    worker = await stage.worker()
    await worker.store.deregister(worker.session.key)
    with pytest.raises(errors.SessionError):
        await worker.claim()

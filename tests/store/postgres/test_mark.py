"""Who has walked past much that is gone begins behind it, and yet finds what comes before.

While somebody's transaction is open the entries of all that was claimed stay in the walk's index.
"""

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY
from tests.store.postgres.stage import Hand, Stage
from tests.store.postgres.standstill import BATCHES, StillClock, entries_read, pages, trust, work
from workron.core.plan import Plan

_FEW = 100
_LONGER = """
    SELECT workron.set_scan_cursor($1, priority, job, until + 600, looks_at)
    FROM workron.scan_cursor($1::integer)
"""
_GONE = """
    INSERT INTO workron.ready (job, pool, priority)
    SELECT -number, id, 0 FROM workron.pool CROSS JOIN generate_series(1, $1) AS number
"""


def _urgent() -> Plan:
    return plans.job("urgent", priority=5)


async def _pass_by(stage: Stage, rows: int) -> None:
    """Have so many rows come and go."""
    await stage.sql.execute(_GONE, rows)
    await stage.sql.execute("DELETE FROM workron.ready WHERE job < 0")


async def _marked(stage: Stage, ready: int = 0) -> Hand:
    """Give a worker that has passed much, and for which so many are ready behind that."""
    await stage.submit(plans.array(BATCHES * MANY + ready))
    worker = await stage.worker()
    await work(worker)
    return worker


async def _trusting(stage: Stage, clock: StillClock) -> Hand:
    """Give one for which many are ready, and that looks in new pages for what came before."""
    worker = await _marked(stage, ready=MANY)
    await _pass_by(stage, 10_000)  # where there was room
    pool = await stage.sql.fetchval("SELECT id FROM workron.pool")
    await worker.store.connection.execute(_LONGER, pool)
    await trust(worker.store, f"ready_{pool}", "ready", clock)
    await worker.claim_one()
    return worker


@pytest.mark.usefixtures("held")
async def test_claim_does_not_pass_again_what_an_earlier_one_has_passed(stage: Stage) -> None:
    worker = await _marked(stage, ready=MANY)
    before = await entries_read(worker.store, "ready_claim_order")
    await work(worker, batches=10, batch=10)
    assert await entries_read(worker.store, "ready_claim_order") - before < 10 * _FEW


async def test_claim_does_not_pass_again_what_is_dead_by_the_page(
    stage: Stage, still: StillClock
) -> None:
    worker = await stage.worker()
    await _pass_by(stage, 400_000)
    await stage.submit(plans.array(20))
    # The first marks each entry as dead, and later all is read again.
    await worker.claim(1)
    await still.go_on(60)
    await worker.claim(1)
    async with pages(worker.store, "ready_claim_order") as read:
        assert len(await worker.claim(1)) == 1
        assert await read() < _FEW


@pytest.mark.usefixtures("held")
async def test_walk_that_goes_on_at_a_lower_priority_is_remembered_too(stage: Stage) -> None:
    urgent = {"priority": 1}
    await stage.submit(plans.dag("high", urgent, work=plans.task(count=BATCHES * MANY)))
    await stage.submit(plans.array(4 * MANY))
    worker = await stage.worker()
    await work(worker, batch=MANY - 1)
    # The last of one priority, and the first of the next, in one claim.
    await work(worker, batches=3)
    before = await entries_read(worker.store, "ready_claim_order")
    await work(worker, batches=10, batch=10)
    assert await entries_read(worker.store, "ready_claim_order") - before < 10 * _FEW


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("is_first", [True, False])
async def test_worker_that_finds_nothing_does_not_pass_all_that_is_gone(
    stage: Stage, *, is_first: bool
) -> None:
    worker = await _marked(stage)
    if is_first:
        worker = await stage.worker("newcomer")
    assert not await worker.claim()
    before = await entries_read(worker.store, "ready_claim_order")
    for _ in range(10):
        assert not await worker.claim()
    assert await entries_read(worker.store, "ready_claim_order") - before < _FEW


async def test_few_urgent_jobs_do_not_have_all_passed_that_is_gone_behind_them(
    stage: Stage, held: StillClock
) -> None:
    await stage.submit(plans.dag("high", {"priority": 5}, work=plans.task(count=BATCHES * MANY)))
    await work(await _marked(stage))
    worker = await stage.worker("newcomer")
    await held.go_on(1)
    await stage.submit(_urgent())
    await worker.claim_one()
    before = await entries_read(worker.store, "ready_claim_order")
    for number in range(4):
        await held.go_on(0.11)
        await stage.submit(plans.job(f"urgent-{number}", priority=5))
        assert len(await worker.claim(2)) == 1
    assert await entries_read(worker.store, "ready_claim_order") - before < 2 * BATCHES * MANY


async def test_what_came_before_the_mark_is_found_seconds_later_in_new_pages(
    stage: Stage, held: StillClock
) -> None:
    worker = await _trusting(stage, held)
    await stage.submit(_urgent())
    assert (await worker.claim_one()).name != "urgent"
    await held.go_on(2.5)
    entries = await entries_read(worker.store, "ready_claim_order")
    async with pages(worker.store, "ready") as read:
        assert (await worker.claim_one()).name == "urgent"
        assert await read() < 20
    assert await entries_read(worker.store, "ready_claim_order") - entries < _FEW


@pytest.mark.parametrize("priority", [5, 0, -5])
async def test_who_finds_nothing_behind_the_mark_looks_before_it_at_once(
    stage: Stage, held: StillClock, priority: int
) -> None:
    worker = await _marked(stage)
    for name in ("one", "two"):
        await held.go_on(0.11)
        await stage.submit(plans.job(name, priority=priority))
        assert (await worker.claim_one()).name == name


async def test_who_finds_nothing_again_and_again_reads_only_the_newest_pages(
    stage: Stage, held: StillClock
) -> None:
    worker = await _trusting(stage, held)
    await work(worker, batches=1, batch=MANY - 1)
    await _pass_by(stage, 20_000)
    assert not await worker.claim()
    async with pages(worker.store, "ready") as read:
        assert not await worker.claim()
        assert await read() < 30


async def test_who_finds_nothing_again_and_again_still_finds_what_took_its_time(
    stage: Stage, held: StillClock
) -> None:
    worker = await _trusting(stage, held)
    await work(worker, batches=1, batch=MANY - 1)
    person = await stage.actor()
    await person.begin()
    await person.submit([_urgent()])
    await _pass_by(stage, 20_000)
    for _ in range(30):
        assert not await worker.claim()
        await held.go_on(0.05)
    await person.commit()
    names = []
    for _ in range(4):
        names += [one.name for one in await worker.claim()]
        await held.go_on(0.05)
    assert names == ["urgent"]


async def test_more_urgent_jobs_than_one_claim_takes_come_before_all_others(
    stage: Stage, held: StillClock
) -> None:
    worker = await _trusting(stage, held)
    await stage.submit(plans.dag("high", {"priority": 5}, urgent=plans.task(count=30)))
    await held.go_on(2.5)
    before = await entries_read(worker.store, "ready_claim_order")
    for _ in range(3):
        assert {one.run for one in await worker.claim(10)} == {"high"}
    assert "high" not in {one.run for one in await worker.claim(10)}
    assert await entries_read(worker.store, "ready_claim_order") - before < _FEW


async def test_many_pages_are_looked_through_once_for_all_urgent_jobs_in_them(
    stage: Stage, held: StillClock
) -> None:
    worker = await _trusting(stage, held)
    await _pass_by(stage, 150_000)
    await stage.submit(plans.dag("high", {"priority": 5}, urgent=plans.task(count=30)))
    await held.go_on(2.5)
    assert {one.run for one in await worker.claim(10)} == {"high"}
    async with pages(worker.store, "ready") as read:
        for _ in range(2):
            assert {one.run for one in await worker.claim(10)} == {"high"}
        assert await read() < _FEW


async def test_what_a_long_transaction_brought_is_found_though_its_pages_were_read(
    stage: Stage, held: StillClock
) -> None:
    worker = await _trusting(stage, held)
    person = await stage.actor()
    await person.begin()
    await person.submit([_urgent()])
    await _pass_by(stage, 1_000)
    for _ in range(2):
        await held.go_on(2.5)
        assert (await worker.claim_one()).name != "urgent"
    await person.commit()
    await held.go_on(2.5)
    assert (await worker.claim_one()).name == "urgent"


async def test_what_came_into_the_last_page_is_found(stage: Stage, held: StillClock) -> None:
    worker = await _trusting(stage, held)
    for number in range(20):
        await stage.submit(plans.job(f"urgent-{number}", priority=5))
        await held.go_on(6)
        assert (await worker.claim_one()).name == f"urgent-{number}"


@pytest.mark.parametrize("seconds", [2, -3600])
async def test_what_came_into_room_that_vacuum_made_is_found_when_all_is_read_again(
    stage: Stage, still: StillClock, seconds: float
) -> None:
    await _pass_by(stage, 20_000)
    worker = await _trusting(stage, still)
    await still.go_on(100 if seconds > 0 else 2)
    await worker.claim_one()
    await stage.sql.execute("VACUUM workron.ready")
    await stage.submit(_urgent())
    await still.go_on(seconds)
    assert (await worker.claim_one()).name == "urgent"


async def test_what_an_end_frees_is_found_by_who_told_of_it(stage: Stage, held: StillClock) -> None:
    await stage.submit(plans.dag("first", one=plans.task(), two=plans.task("one")))
    worker = await stage.worker()
    first = await worker.claim_one()
    await held.go_on(1)
    await stage.submit(plans.array((BATCHES + 1) * MANY))
    await work(worker)
    await worker.end(first)
    assert (await worker.claim_one()).name == "two"


@pytest.mark.usefixtures("held")
async def test_what_an_end_frees_near_the_mark_is_found_by_the_index(stage: Stage) -> None:
    tasks = {"last": plans.task(), "next": plans.task("last"), "more": plans.task(count=MANY)}
    await stage.submit(plans.dag("near", gone=plans.task(count=BATCHES * MANY), **tasks))
    worker = await stage.worker()
    await work(worker)
    [last] = await worker.claim(1)
    await worker.claim(1)
    async with pages(worker.store, "ready") as read:
        await worker.end(last)
        assert (await worker.claim_one()).name == "next"
        assert await read() < 20


@pytest.mark.usefixtures("held")
async def test_what_an_end_frees_is_found_by_who_told_of_it_also_if_it_is_more_urgent(
    stage: Stage,
) -> None:
    await stage.submit(plans.job("up"))
    await stage.submit(plans.job("down", priority=5, outside=[plans.outside("up")]))
    worker = await stage.worker()
    first = await worker.claim_one()
    await stage.submit(plans.array((BATCHES + 1) * MANY))
    await work(worker)
    await worker.end(first)
    assert (await worker.claim_one()).name == "down"


async def test_mark_of_before_the_clock_was_put_back_holds_no_more(
    stage: Stage, held: StillClock
) -> None:
    worker = await _trusting(stage, held)
    await stage.submit(_urgent())
    await held.go_on(-3600)
    assert (await worker.claim_one()).name == "urgent"


async def test_worker_that_passes_few_again_has_no_mark_and_writes_nothing_where_nothing_is(
    stage: Stage, still: StillClock
) -> None:
    worker = await stage.worker()
    await _pass_by(stage, 20_000)
    assert not await worker.claim()
    await stage.sql.execute("VACUUM workron.ready")
    await still.go_on(60)
    assert not await worker.claim()
    number = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
    before = await stage.sql.fetchval(number)
    assert not await worker.claim()
    assert await stage.sql.fetchval(number) == before

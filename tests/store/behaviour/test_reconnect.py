"""State is durable: another store object on the same database finds it unchanged."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker, mint, report_on
from workron.store.types import Outcome, ReportResult


@pytest.fixture(autouse=True)
def _only_where_it_lasts(harness: Harness) -> None:
    if not harness.database.is_persistent:
        pytest.skip("memory ends with its store")


async def test_states_survive_a_reconnect(harness: Harness, worker: Worker) -> None:
    tasks = {name: task() for name in ("good", "bad", "again", "held", "queued")}
    run = await harness.submit(
        plans.dag("flow", None, **tasks, no=task("bad"), late=task("good", "held"))
    )
    claimed = await worker.claim_by_name()
    await worker.release(claimed["queued"])
    await worker.end(claimed["good"], result={"n": 1}, output=b"text")
    await worker.fail(claimed["bad"])
    await worker.retry(claimed["again"])
    before = await harness.rows(run)
    await harness.reopen()
    assert await harness.rows(run) == before
    good = before["good"].job
    assert await harness.store.read_result(good) == {"n": 1}
    assert await harness.store.read_output(good) == b"text"


async def test_claim_can_be_completed_after_a_reconnect(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a")))
    claimed = await worker.claim_one()
    await harness.reopen()
    worker.store = harness.store
    assert [held.claim for held in (await worker.heartbeat()).held] == [claimed.claim]
    await worker.end(claimed)
    assert await harness.state(run, "b") == "Queued"


async def test_repeated_calls_have_the_same_answers_after_a_reconnect(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.array(2))
    end, wanted = report_on(await worker.claim_one()), mint()
    first = await worker.store.complete(worker.session.key, [end], wanted)
    await harness.reopen()
    second = await harness.store.complete(worker.session.key, [end], wanted)
    assert list(second.answers) == [ReportResult.ALREADY]
    assert [one.claim for one in second.claimed] == [one.claim for one in first.claimed]


async def test_fence_rises_over_a_reconnect(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job())
    first = await worker.claim_one()
    await harness.reopen()
    await harness.store.reap(worker.session.worker, version=None)
    second = await (await harness.worker()).claim_one()
    assert second.fence > first.fence


async def test_unpropagated_ends_survive_a_reconnect(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task("b"), d=task("c")))
    await worker.fail(await worker.claim_one())
    await harness.reopen()
    await harness.propagate_all()
    assert await harness.state(run, "d") == "Skipped/UpstreamFailed"


async def test_external_dependencies_survive_a_reconnect(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job("down", outside=[plans.outside("up")]))
    await harness.reopen()
    worker.store = harness.store
    await harness.submit(plans.job("up"))
    await worker.run_all({"up": Outcome.FAILED})
    assert await harness.state(run) == "Skipped/UpstreamFailed"


async def test_suspensions_and_backoffs_survive_a_reconnect(
    harness: Harness, worker: Worker
) -> None:
    held = await harness.submit(plans.job("held", is_suspended=True))
    put_off = await harness.submit(plans.job("put-off"))
    await worker.retry(await worker.claim_one(), delay_seconds=60)
    await harness.reopen()
    await harness.store.resume(held)
    await harness.advance(timedelta(minutes=2))
    await harness.promote()
    assert await harness.state(held) == await harness.state(put_off) == "Queued"


async def test_database_keeps_its_identity(harness: Harness, worker: Worker) -> None:
    before = (await worker.heartbeat()).database
    await harness.reopen()
    worker.store = harness.store
    assert (await worker.heartbeat()).database == before

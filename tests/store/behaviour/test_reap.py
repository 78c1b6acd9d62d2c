"""reap: a dead worker's claims are requeued, a live worker's never."""

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, Worker
from workron.core import errors
from workron.core.states import Reason, State


async def test_heartbeats_of_all_workers_are_listed(harness: Harness, worker: Worker) -> None:
    other = await harness.worker("other", pool="large")
    server, before = await harness.heartbeat_version(worker)
    await worker.heartbeat()
    await worker.heartbeat()
    assert await harness.heartbeat_version(worker) == (server, before + 2)
    seen = {sighting.worker for sighting in await harness.store.list_heartbeats()}
    assert seen == {worker.session.worker, other.session.worker}
    assert {sighting.lease_seconds for sighting in await harness.store.list_heartbeats()} == {60}


async def test_claim_is_requeued_when_its_worker_sends_no_heartbeat(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    reaped = await harness.reap(worker)
    assert reaped.was_reaped
    assert (list(reaped.requeued), list(reaped.failed)) == ([run], [])
    row = await harness.row(run)
    assert (row.state, row.attempts, row.failures, row.losses) == ("Queued", 1, 0, 1)


async def test_claim_stays_when_its_worker_has_sent_a_heartbeat(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    seen = await harness.heartbeat_version(worker)
    await worker.heartbeat()
    reaped = await harness.store.reap(worker.session.worker, version=seen)
    assert not reaped.was_reaped
    assert not reaped.requeued
    assert await harness.state(run) == "Running"
    await worker.end(claimed)
    assert await harness.state(run) == "Succeeded"


async def test_reaped_worker_is_removed(harness: Harness, worker: Worker) -> None:
    await harness.reap(worker)
    assert not await harness.store.list_heartbeats()
    with pytest.raises(errors.SessionError):
        await worker.heartbeat()
    with pytest.raises(errors.SessionError):
        await worker.claim()


async def test_second_reap_finds_nothing(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    sign = await harness.heartbeat_version(worker)
    await harness.store.reap(worker.session.worker, version=sign)
    again = await harness.store.reap(worker.session.worker, version=sign)
    assert not again.was_reaped
    assert not again.requeued
    assert (await harness.row(run)).losses == 1


async def test_proven_death_needs_no_heartbeat_version(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    await worker.heartbeat()
    reaped = await harness.store.reap(worker.session.worker, version=None)
    assert reaped.was_reaped
    assert list(reaped.requeued) == [run]


async def test_other_workers_keep_their_claims(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.array(2))
    lost = await worker.claim_one()
    other = await harness.worker("other")
    kept = await other.claim_one()
    reaped = await harness.reap(worker)
    assert list(reaped.requeued) == [lost.job]
    assert [held.claim for held in (await other.heartbeat()).held] == [kept.claim]
    assert await harness.counts(run) == {"Queued": 1, "Running": 1}


async def test_job_fails_when_it_was_lost_too_often(harness: Harness) -> None:
    run = await harness.submit(plans.job(max_losses=2))
    failed = []
    for number in range(3):
        worker = await harness.worker(f"w{number}")
        await worker.claim_one()
        failed.append(list((await harness.reap(worker)).failed))
    assert failed == [[], [], [run]]
    row = await harness.row(run)
    assert (row.state, row.reason, row.losses) == ("Failed", Reason.WORKER_LOST, 3)


async def test_cancelled_job_has_no_reason_of_lost_workers(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job(max_losses=0))
    await worker.claim_one()
    await harness.store.cancel(run)
    await harness.reap(worker)
    row = await harness.row(run)
    assert (row.state, row.message, row.losses) == (State.CANCELLED, None, 1)


async def test_downstream_is_skipped_when_the_worker_was_lost_too_often(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(max_losses=0), b=task("a")))
    await worker.claim_one()
    await harness.reap(worker)
    await harness.propagate_all()
    stands = await harness.states(run)
    assert stands["a"] == "Failed/WorkerLost"
    assert stands["b"] == "Skipped/UpstreamFailed"


async def test_no_loss_is_charged_when_several_jobs_were_lost_together(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=3, max_losses=0)))
    await worker.claim(3)
    reaped = await harness.reap(worker)
    assert len(reaped.requeued) == 3
    rows = [row for row in await harness.store.list_jobs(run) if row.index is not None]
    assert {(row.state, row.losses) for row in rows} == {("Queued", 0)}


async def test_jobs_lost_together_run_alone_next(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.array(3))
    await worker.claim(3)
    await harness.reap(worker)
    heir = await harness.worker("heir")
    for _ in range(3):
        (claimed,) = await heir.claim(MANY)
        assert not await heir.claim(MANY)
        await heir.end(claimed)
    await harness.propagate_all()
    assert await harness.state(run) == "Succeeded"


async def test_job_that_must_run_alone_is_claimed_before_others(
    harness: Harness, worker: Worker
) -> None:
    lost = await harness.submit(plans.array(2))
    await worker.claim(2)
    await harness.reap(worker)
    await harness.submit(plans.job("urgent", priority=9))
    heir = await harness.worker("heir")
    (claimed,) = await heir.claim(MANY)
    assert claimed.job > lost
    assert claimed.name == "work"


async def test_busy_worker_claims_nothing_while_a_job_must_run_alone(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job("busy"))
    busy = await harness.worker("busy")
    held = await busy.claim_one()
    await harness.submit(plans.array(2))
    await worker.claim(2)
    await harness.reap(worker)
    await harness.submit(plans.job("other"))
    assert not await busy.claim(MANY)
    await busy.end(held)
    assert [one.name for one in await busy.claim(MANY)] == ["work"]


async def test_busier_workers_claim_while_a_job_must_run_alone(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.array(6, "busy"))
    one, two, three = [await harness.worker(name) for name in ("one", "two", "three")]
    for busy, count in ((one, 2), (two, 1), (three, 3)):
        assert len(await busy.claim(count)) == count
    await harness.submit(plans.array(2, "lost"))
    await worker.claim(2)
    await harness.reap(worker)
    await harness.submit(plans.array(4, "next"))
    # Two jobs must run alone: the two workers with the fewest claims are reserved for them.
    assert [len(await busy.claim(2)) for busy in (one, two, three)] == [0, 0, 2]
    lost = await (await harness.worker("idle")).claim(MANY)
    assert [claimed.run for claimed in lost] == ["lost"]
    # Now one job must run alone.
    assert [len(await busy.claim(1)) for busy in (two, one, three)] == [0, 1, 1]


async def test_workers_claim_again_when_no_job_must_run_alone(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.array(2))
    await worker.claim(2)
    await harness.reap(worker)
    await harness.submit(plans.array(4, "next"))
    one, two = await harness.worker("one"), await harness.worker("two")
    assert len(await one.claim(MANY)) == 1
    assert len(await two.claim(MANY)) == 1
    three = await harness.worker("three")
    assert len(await three.claim(MANY)) == 4


@pytest.mark.parametrize("count", [1, 3])
async def test_no_loss_is_charged_when_a_user_ended_the_worker(
    harness: Harness, worker: Worker, count: int
) -> None:
    run = await harness.submit(plans.dag(a=task(count=3, max_losses=0)))
    await worker.claim(count)
    await harness.store.reap(worker.session.worker, version=None, charge_losses=False)
    rows = [row for row in await harness.store.list_jobs(run) if row.index is not None]
    assert {(row.state, row.losses) for row in rows} == {("Queued", 0)}
    assert len(await (await harness.worker("heir")).claim(3)) == 3


async def test_loss_is_charged_when_a_job_that_runs_alone_is_lost(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=2, max_losses=0)))
    await worker.claim(2)
    await harness.reap(worker)
    heir = await harness.worker("heir")
    poison = await heir.claim_one()
    reaped = await harness.reap(heir)
    assert list(reaped.failed) == [poison.job]
    other = await harness.worker("other")
    await other.end(await other.claim_one())
    counts = await harness.counts(run)
    assert counts == {"Failed/WorkerLost": 1, "Succeeded": 1}


async def test_job_lost_alone_need_not_run_alone(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job("one"))
    await worker.claim_one()
    await harness.reap(worker)
    await harness.submit(plans.job("two"))
    heir = await harness.worker("heir")
    assert {one.name for one in await heir.claim(2)} == {"one", "two"}


async def test_released_job_must_still_run_alone(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.array(2))
    await worker.claim(2)
    await harness.reap(worker)
    heir = await harness.worker("heir")
    await heir.release(await heir.claim_one())
    assert len(await heir.claim(MANY)) == 1
    assert not await heir.claim(MANY)


async def test_lost_attempt_is_listed(harness: Harness) -> None:
    run = await harness.submit(plans.job())
    worker = await harness.worker("anna")
    await worker.claim_one()
    await harness.reap(worker)
    (attempt,) = await harness.store.list_attempts(run)
    assert (attempt.attempt, attempt.outcome, attempt.worker) == (1, "Lost", "anna")


async def test_claims_are_requeued_when_their_worker_has_no_row(
    harness: Harness, worker: Worker
) -> None:
    if not harness.database.is_persistent:
        pytest.skip("a row of a database in memory cannot be deleted by another connection")
    run = await harness.submit(plans.array(3))
    await worker.claim(3)
    await harness.database.execute("DELETE FROM worker")
    assert 0 < await harness.store.reap_orphans(2) <= 2
    while await harness.store.reap_orphans(2):
        pass
    assert await harness.counts(run) == {"Queued": 3}


async def test_claim_is_not_an_orphan_when_its_worker_is_registered(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    assert await harness.store.reap_orphans(10) == 0
    assert await harness.state(run) == "Running"


@pytest.mark.parametrize("count", [1, 3])
async def test_no_loss_is_charged_when_the_jobs_did_not_cause_the_death(
    harness: Harness, worker: Worker, count: int
) -> None:
    run = await harness.submit(plans.dag(a=task(count=count)))
    await worker.claim(count)
    await harness.store.reap(worker.session.worker, version=None, charge_losses=False)
    rows = [row for name, row in (await harness.rows(run)).items() if name.startswith("a[")]
    assert [row.losses for row in rows] == [0] * count
    # No job must run alone, so one worker claims them all.
    assert len(await (await harness.worker("other")).claim(MANY)) == count

"""Concurrent calls: no double claim, no lost end, no live worker reaped."""

import asyncio
import math
import os
from collections import Counter
from collections.abc import Sequence

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker, mint, mint_boot, report_on
from workron.core import errors
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.verdict import Condition
from workron.store import api, types
from workron.store.types import Outcome, ReportResult

MANY_JOBS = int(os.environ.get("WORKRON_DRAIN_JOBS", "100000"))
"""Jobs of the large drain. 100,000 take minutes."""
ROUNDS = 20


async def _workers(harness: Harness, count: int, stores: int) -> list[Worker]:
    opened = [await harness.open_another() for _ in range(stores)]
    return [await harness.worker(f"w{i}", store=opened[i % len(opened)]) for i in range(count)]


async def _drain(worker: Worker, batch: int) -> list[JobId]:
    """Claim and complete in one round trip until nothing is left; return the jobs."""
    claimed = await worker.claim(batch)
    run = [one.job for one in claimed]
    while claimed:
        ends = [report_on(one) for one in claimed]
        completed = await worker.store.complete(worker.session.key, ends, mint(batch))
        assert set(completed.answers) == {ReportResult.ACCEPTED}
        claimed = completed.claimed
        run += [one.job for one in claimed]
    return run


async def test_no_job_runs_twice_when_30_claimers_share_20_jobs(harness: Harness) -> None:
    run = await harness.submit(plans.array(20))
    workers = await _workers(harness, 30, stores=10)
    claims = await asyncio.gather(*(worker.claim() for worker in workers))
    claimed = [one.job for rows in claims for one in rows]
    assert len(claimed) == len(set(claimed)) <= 20
    ends = [worker.end(one) for worker, rows in zip(workers, claims, strict=True) for one in rows]
    assert set(await asyncio.gather(*ends)) == {ReportResult.ACCEPTED}
    rest = await asyncio.gather(*(_drain(worker, 1) for worker in workers))
    assert len(claimed) + sum(map(len, rest)) == 20
    jobs = (row.job for row in await harness.store.list_jobs(run) if row.kind is Kind.JOB)
    attempts = [await harness.store.list_attempts(job) for job in jobs]
    assert [[one.attempt for one in of_one] for of_one in attempts] == [[1]] * 20


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_no_job_runs_twice_when_64_claimers_drain_many(harness: Harness) -> None:
    run = await harness.submit(plans.array(MANY_JOBS))
    workers = await _workers(harness, 64, stores=16)
    ran = await asyncio.gather(*(_drain(worker, 25) for worker in workers))
    runs = Counter(job for jobs in ran for job in jobs)
    assert len(runs) == MANY_JOBS
    assert set(runs.values()) == {1}
    await harness.propagate_all()
    assert await harness.counts(run) == {"Succeeded": MANY_JOBS}
    assert await harness.state(run, "work") == "Succeeded"


async def test_heartbeat_and_reap_cannot_both_succeed(harness: Harness) -> None:
    other = await harness.open_another()
    for number in range(ROUNDS):
        worker = await harness.worker(f"w{number}")
        run = await harness.submit(plans.job(f"job{number}"))
        await worker.claim_one()
        seen = await harness.heartbeat_version(worker)
        heartbeat, reaped = await asyncio.gather(
            worker.heartbeat(),
            other.reap(worker.session.worker, version=seen),
            return_exceptions=True,
        )
        assert isinstance(reaped, types.ReapResult)
        assert reaped.was_reaped == isinstance(heartbeat, errors.SessionError)
        assert await harness.state(run) == ("Queued" if reaped.was_reaped else "Running")
        await (await harness.worker("sweeper")).run_all()


async def test_live_workers_are_never_reaped(harness: Harness) -> None:
    run = await harness.submit(plans.array(40))
    workers = await _workers(harness, 4, stores=4)
    for worker in workers:
        await worker.claim(10)
    other = await harness.open_another()
    lost: list[JobId] = []
    for _ in range(ROUNDS):
        seen = await other.list_heartbeats()
        await asyncio.gather(*(worker.heartbeat() for worker in workers))
        reaps = [other.reap(one.worker, version=one.version) for one in seen]
        heartbeats = [worker.heartbeat() for worker in workers]
        results = await asyncio.gather(*reaps, *heartbeats)
        lost += [
            job for one in results if isinstance(one, types.ReapResult) for job in one.requeued
        ]
    assert not lost
    assert await harness.counts(run) == {"Running": 40}


async def test_claim_and_reap_leave_no_claim_without_a_worker(harness: Harness) -> None:
    other = await harness.open_another()
    for number in range(ROUNDS):
        worker = await harness.worker(f"w{number}")
        run = await harness.submit(plans.array(3, f"flow{number}"))
        claimed, reaped = await asyncio.gather(
            worker.claim(3),
            other.reap(worker.session.worker, version=await harness.heartbeat_version(worker)),
            return_exceptions=True,
        )
        assert isinstance(reaped, types.ReapResult)
        assert reaped.was_reaped
        if isinstance(claimed, BaseException):
            assert isinstance(claimed, errors.SessionError)
        else:
            assert len(claimed) == 3
        assert await harness.counts(run) == {"Queued": 3}
        assert await other.reap_orphans(10) == 0
        await harness.store.cancel(run)


async def test_newer_boot_and_claim_leave_no_claim_with_the_older(harness: Harness) -> None:
    other = await harness.open_another()
    for number in range(ROUNDS):
        older = await harness.worker("worker")
        run = await harness.submit(plans.job(f"job{number}"))
        newer = await harness.worker("worker", store=other)
        await asyncio.gather(older.claim(), newer.heartbeat(), return_exceptions=True)
        assert await harness.state(run) == "Queued"
        assert len(await harness.store.list_heartbeats()) == 1
        await harness.store.cancel(run)


@pytest.mark.parametrize("width", [2, 8, 70])
async def test_downstream_is_queued_once_when_its_upstreams_end_at_once(
    harness: Harness, width: int
) -> None:
    names = [f"t{i}" for i in range(width)]
    workers = await _workers(harness, min(width, 8), stores=min(width, 8))
    for number in range(5):
        plan = plans.dag(
            f"flow{number}", **{name: task() for name in names}, end=task(*names), two=task(*names)
        )
        run = await harness.submit(plan)
        ran = await asyncio.gather(*(_run_once(worker, width) for worker in workers))
        assert sum(ran) == width
        await harness.propagate_all()
        stands = await harness.states(run)
        assert (stands["end"], stands["two"]) == ("Queued", "Queued")
        await workers[0].run_all()
        assert await harness.state(run) == "Succeeded"


async def _run_once(worker: Worker, count: int) -> int:
    """Complete one by one the jobs of a single claim."""
    # No more than its share, or a late worker would claim the downstreams too.
    claimed = await worker.claim(math.ceil(count / 8))
    for one in claimed:
        await worker.end(one)
    return len(claimed)


async def test_downstream_is_queued_when_submitted_while_its_upstream_ends(
    harness: Harness, worker: Worker
) -> None:
    other = await harness.open_another()
    for number in range(ROUNDS):
        await harness.submit(plans.job(f"up{number}"))
        claimed = await worker.claim_one()
        down = plans.job(f"down{number}", outside=[plans.outside(f"up{number}")])
        (submitted,), _ = await asyncio.gather(other.submit([down]), worker.end(claimed))
        assert await harness.state(submitted.run) == "Queued"
        await worker.run_all()


async def test_downstream_is_linked_when_both_are_submitted_at_once(
    harness: Harness, worker: Worker
) -> None:
    other = await harness.open_another()
    for number in range(ROUNDS):
        down = plans.job(f"down{number}", outside=[plans.outside(f"up{number}")])
        (submitted,), _ = await asyncio.gather(
            other.submit([down]), harness.store.submit([plans.job(f"up{number}")])
        )
        assert await harness.state(submitted.run) == "Waiting/Upstream"
        await worker.run_all()
        assert await harness.state(submitted.run) == "Succeeded"


async def test_cycle_is_rejected_when_both_halves_are_submitted_at_once(
    harness: Harness,
) -> None:
    other = await harness.open_another()
    for number in range(ROUNDS):
        one, two = f"one{number}", f"two{number}"
        answers = await asyncio.gather(
            other.submit([plans.job(one, outside=[plans.outside(two)])]),
            harness.store.submit([plans.job(two, outside=[plans.outside(one)])]),
            return_exceptions=True,
        )
        assert sum(isinstance(answer, errors.GraphError) for answer in answers) == 1
    assert len(await harness.store.list_runs()) == ROUNDS


@pytest.mark.parametrize("verb", ["cancel", "suspend"])
async def test_jobs_do_not_start_after_the_answer_when_workers_keep_claiming(
    harness: Harness, verb: str
) -> None:
    workers = await _workers(harness, 4, stores=4)
    other = await harness.open_another()
    for number in range(5):
        run = await harness.submit(plans.array(40, f"flow{number}"))
        claims = [worker.claim(5) for worker in workers]
        rows = await asyncio.gather(getattr(other, verb)(run), *claims)
        assert not any(await asyncio.gather(*(worker.claim(5) for worker in workers)))
        taken = [list(one) for one in rows[1:]]
        await _give_back(workers, taken)
        await harness.propagate_all()
        stand = "Cancelled" if verb == "cancel" else "Waiting/Suspended"
        assert await harness.counts(run) == {stand: 40}
        await harness.store.cancel(run)


async def _give_back(
    workers: Sequence[Worker], taken: Sequence[Sequence[types.ClaimedJob]]
) -> None:
    for worker, claimed in zip(workers, taken, strict=True):
        await worker.release(*claimed)


async def test_suspend_and_resume_at_once_lose_no_job(harness: Harness, worker: Worker) -> None:
    other = await harness.open_another()
    for number in range(5):
        plan = plans.dag(f"flow{number}", a=task(count=20), b=task("a"))
        run = await harness.submit(plan)
        claimed, *_ = await asyncio.gather(worker.claim(5), other.suspend(run))
        ends = [worker.retry(one, 0) if one.job % 2 else worker.end(one) for one in claimed]
        await asyncio.gather(other.resume(run), harness.store.suspend(run), *ends)
        await harness.store.resume(run)
        await harness.promote()
        await worker.run_all()
        assert await harness.state(run) == "Succeeded"


async def test_two_maintainers_are_harmless(harness: Harness) -> None:
    worker = await harness.worker()
    plan = plans.dag(a=task(), b=task("a", count=30), c=task(when={"b": Condition.FINISHED}))
    run = await harness.submit(plan)
    stores = [await harness.open_another() for _ in range(2)]
    tired = await harness.submit(plans.dag("tired", {"priority": 1}, b=task(count=30)))
    claimed = await worker.claim(30)
    ends = [report_on(one, Outcome.RETRY) for one in claimed]
    await worker.store.complete(worker.session.key, ends)
    named = await worker.claim_by_name()
    await worker.fail(named["a"])
    late = await harness.submit(plans.dag("late", b=task(count=30, deadline_seconds=0)))
    await harness.advance(plans.HOUR)
    await asyncio.gather(*(_maintain(store) for store in stores))
    assert await harness.state(run, "c") == "Queued"
    assert await harness.counts(tired) == {"Queued": 30}
    assert (await harness.counts(late))["Failed/DeadlineExceeded"] == 30


async def _maintain(store: api.Store) -> None:
    for _ in range(40):
        await asyncio.gather(
            store.propagate(7), store.promote(7), store.expire(7), store.reap_orphans(7)
        )


async def test_call_claims_no_more_when_repeated_while_it_runs(
    harness: Harness, worker: Worker
) -> None:
    other = await harness.open_another()
    for number in range(ROUNDS):
        key = worker.session.key
        run = await harness.submit(plans.array(4, f"flow{number}"))
        wanted = mint(2)
        rows = await asyncio.gather(worker.store.claim(key, wanted), other.claim(key, wanted))
        assert len({one.job for one in [*rows[0], *rows[1]]}) == 2
        assert await harness.counts(run) == {"Running": 2, "Queued": 2}
        await harness.store.cancel(run)
        await harness.reap(worker)
        worker = await harness.worker()


async def test_report_counts_once_when_repeated_while_it_runs(
    harness: Harness, worker: Worker
) -> None:
    other, key = await harness.open_another(), worker.session.key
    for number in range(ROUNDS):
        await harness.submit(plans.dag(f"flow{number}", a=task(), b=task("a")))
        ends = [report_on(await worker.claim_one())]
        done = await asyncio.gather(worker.store.complete(key, ends), other.complete(key, ends))
        answers = sorted(answer for completed in done for answer in completed.answers)
        assert answers == [ReportResult.ACCEPTED, ReportResult.ALREADY]
        assert len(await harness.store.list_attempts(ends[0].job)) == 1
        await worker.run_all()


async def test_registration_repeated_at_once_has_one_session(
    harness: Harness,
) -> None:
    other, token = await harness.open_another(), await harness.token()
    for number in range(ROUNDS):
        registration = types.Registration(token, f"w{number}", mint_boot(), 1)
        one, two = await asyncio.gather(
            harness.store.register(registration), other.register(registration)
        )
        assert one.worker == two.worker
    assert len(await harness.store.list_heartbeats()) == ROUNDS

"""delete_run: an ended run leaves with all its rows, unless something still needs it."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.store.types import DeleteRefusal, ReportResult


async def _deleted(harness: Harness, run: JobId) -> None:
    assert await harness.store.delete_run(run) is None
    for jobs in (harness.store.list_jobs, harness.store.list_specs, harness.store.list_attempts):
        assert not await jobs(run)
    assert await harness.store.get_run(run) is None


async def test_ended_run_is_unknown_when_it_was_deleted(harness: Harness, worker: Worker) -> None:
    other = await harness.submit(plans.dag("other", a=task()))
    run = await harness.submit(plans.dag("flow", a=task(count=3), b=task("a"), c=task()))
    await worker.run_all()
    jobs = [row.job for row in await harness.store.list_jobs(run)]
    await _deleted(harness, run)
    assert not await harness.store.get_jobs(jobs)
    for job in jobs:
        assert await harness.store.get_spec(job) is None
        assert not await harness.store.list_attempts(job)
        assert await harness.store.read_output(job) == b""
        assert await harness.store.read_result(job) is None
    assert await harness.store.find_run(plans.NAMESPACE, Kind.WORKFLOW, "flow") is None
    assert [one.run for one in await harness.store.list_runs()] == [other]
    assert await harness.counts(other) == {"Succeeded": 1}


async def test_nothing_changes_when_a_run_is_deleted_again(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.run_all()
    for _ in range(2):
        await _deleted(harness, run)


async def test_large_run_is_deleted_in_steps(harness: Harness) -> None:
    run = await harness.submit(plans.dag("flow", a=task(count=10_001), b=task("a")))
    await harness.store.cancel(run)
    await harness.propagate_all()
    await _deleted(harness, run)
    assert not await harness.store.list_runs()


async def test_name_can_be_used_again_when_its_run_was_deleted(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job("hello"))
    await worker.run_all()
    await _deleted(harness, run)
    again = await harness.submit(plans.job("hello"))
    assert again != run
    await worker.run_all()
    assert await harness.state(again) == "Succeeded"


async def test_older_run_is_deleted_when_its_name_has_a_newer_one(
    harness: Harness, worker: Worker
) -> None:
    old = await harness.submit(plans.job("hello"))
    await worker.run_all()
    new = await harness.submit(plans.job("hello"))
    await _deleted(harness, old)
    found = await harness.store.find_run(plans.NAMESPACE, Kind.JOB, "hello")
    assert found is not None
    assert found.run == new


@pytest.mark.parametrize("is_running", [False, True])
async def test_run_stays_when_it_has_not_ended(
    harness: Harness, worker: Worker, *, is_running: bool
) -> None:
    run = await harness.submit(plans.dag("flow", a=task(), b=task("a")))
    if is_running:
        await worker.claim_one()
    before = await harness.rows(run)
    assert await harness.store.delete_run(run) is DeleteRefusal.UNFINISHED
    assert await harness.rows(run) == before


async def test_run_stays_while_an_unfinished_run_depends_on_it(
    harness: Harness, worker: Worker
) -> None:
    up = await harness.submit(plans.job("up"))
    await worker.run_all()
    down = await harness.submit(plans.job("down", outside=[plans.outside("up")]))
    assert await harness.store.delete_run(up) is DeleteRefusal.NEEDED
    await worker.run_all()
    assert await harness.state(down) == "Succeeded"
    await _deleted(harness, up)
    assert await harness.state(down) == "Succeeded"
    await _deleted(harness, down)


async def test_run_of_an_object_stays(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(generation=1))
    await worker.run_all()
    assert await harness.store.delete_run(run) is DeleteRefusal.OWNED
    assert await harness.state(run) == "Succeeded"


async def test_job_waits_when_its_upstream_was_deleted_before(
    harness: Harness, worker: Worker
) -> None:
    up = await harness.submit(plans.job("up"))
    await worker.run_all()
    await _deleted(harness, up)
    down = await harness.submit(plans.job("down", outside=[plans.outside("up")]))
    assert await harness.state(down) == "Waiting/Upstream"
    await harness.submit(plans.job("up"))
    await worker.run_all()
    assert await harness.state(down) == "Succeeded"


async def test_repeated_report_is_stale_when_its_run_was_deleted(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await worker.end(claimed)
    await _deleted(harness, run)
    assert await worker.end(claimed) is ReportResult.STALE


async def test_no_row_is_left_of_a_deleted_run(harness: Harness, worker: Worker) -> None:
    if not harness.database.is_persistent:
        pytest.skip("a database in memory has one connection")
    first = await harness.submit(plans.dag("one", a=task(count=2), b=task("a"), c=task("b")))
    second = await harness.submit(plans.job("late", outside=[plans.outside("x")]))
    await worker.retry(await worker.claim_one())
    await harness.advance(timedelta(hours=1))
    await harness.promote()
    await harness.expire()
    await worker.run_all()
    for run in (first, second):
        await harness.store.cancel(run)
    await harness.propagate_all()
    for run in (first, second):
        await _deleted(harness, run)
    left = {table: await harness.database.count_rows(table) for table in _TABLES}
    assert left == dict.fromkeys(_TABLES, 0)


_TABLES = (
    *("run", "job", "spec", "edge", "external_dependency", "waiting", "ready", "deferred"),
    *("running", "deadline", "unpropagated", "done", "attempt", "result", "output"),
    *("awaiting_proof", "bulk_update"),
)

"""Jobs of a store are reported in the statuses of their objects; objects expire."""

from typing import Any

from tests.controller import cluster
from tests.controller.jobs.conftest import StatusHarness
from workron.core.plan import Kind
from workron.store.types import Session
from workron_controller.kube.conditions import StatusReason


async def test_status_is_written_at_each_change_of_a_job_and_never_twice(
    harness: StatusHarness, session: Session
) -> None:
    await harness.apply(cluster.job())
    phases = [[status["phase"] for status in await harness.sync()]]
    phases.append([status["phase"] for status in await harness.sync()])
    [one] = await cluster.claimed(harness.store, session)
    phases.append([status["phase"] for status in await harness.sync()])
    await cluster.ended(harness.store, session, one, output=b"hello\n")
    [end] = await harness.sync()
    assert phases == [["Queued"], [], ["Running"]]
    assert (end["phase"], end["exitCode"], end["outputTail"]) == ("Succeeded", 0, "hello\n")
    assert await harness.sync() == []


async def test_status_is_written_once_when_the_job_ends_before_the_first_sync(
    harness: StatusHarness, session: Session
) -> None:
    await harness.apply(cluster.job())
    [one] = await cluster.claimed(harness.store, session)
    await cluster.ended(harness.store, session, one)
    assert [status["phase"] for status in await harness.sync()] == ["Succeeded"]


async def test_status_is_written_again_when_it_was_outdated_during_the_write(
    harness: StatusHarness,
) -> None:
    await harness.apply(cluster.job())
    await harness.sync()
    harness.blocking["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    harness.during_write = harness.blocking.clear
    assert [status["phase"] for status in await harness.sync()] == ["Waiting"]
    assert [status["phase"] for status in await harness.sync()] == ["Queued"]


async def test_queued_job_reports_what_blocks_its_pool(harness: StatusHarness) -> None:
    harness.blocking["default", "gpu"] = StatusReason("PoolNotFound", "no WorkerPool gpu")
    await harness.apply(cluster.job(pool="gpu"))
    [status] = await harness.sync()
    assert (status["phase"], status["reason"]) == ("Waiting", "PoolNotFound")
    harness.blocking.clear()
    assert [status["phase"] for status in await harness.sync()] == ["Queued"]


async def test_status_is_written_again_when_another_process_changed_it(
    harness: StatusHarness,
) -> None:
    raw = cluster.job()
    await harness.apply(raw)
    [first] = await harness.sync()
    harness.handler.objects.mark_all_unsynced()
    harness.handler.handle(Kind.JOB, cluster.with_status(raw, **{**first, "exitCode": 77}))
    [again] = await harness.sync()
    assert "exitCode" not in again


async def test_object_is_deleted_when_its_time_to_live_is_over(
    harness: StatusHarness, session: Session
) -> None:
    kept, timed = (
        await harness.apply(cluster.job("kept")),
        await harness.apply(cluster.job("timed", ttlSecondsAfterFinished=60)),
    )
    for one in await cluster.claimed(harness.store, session, 2):
        await cluster.ended(harness.store, session, one)
    await harness.sync()
    harness.clock.advance(50)
    await harness.ttl.run_once()
    assert harness.deleted == []
    harness.clock.advance(15)
    await harness.ttl.run_once()
    assert harness.deleted == ["timed"]
    assert [cached.latest.name for cached in harness.handler.objects] == ["kept"]
    assert (kept.is_finished, timed.is_finished) == (True, True)


async def test_object_is_not_deleted_when_its_times_are_out_of_range(
    harness: StatusHarness,
) -> None:
    raw = cluster.job(ttlSecondsAfterFinished=1 << 60)
    moments: list[Any] = ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "soon", 7, []]
    for finished in moments:
        harness.handler.handle(
            Kind.JOB, cluster.with_status(raw, phase="Failed", finishedAt=finished)
        )
        await harness.ttl.run_once()
    assert harness.deleted == []


async def test_object_is_not_deleted_when_its_run_has_not_ended(harness: StatusHarness) -> None:
    raw = cluster.job(ttlSecondsAfterFinished=1)
    submitted = await harness.apply(raw)
    # After a restart only the forged status is known.
    harness.handler.objects.remove(submitted.uid)
    forged = cluster.with_status(raw, phase="Succeeded", finishedAt="2020-01-01T00:00:00Z")
    harness.handler.handle(Kind.JOB, forged)
    await harness.ttl.run_once()
    [cached] = list(harness.handler.objects)
    assert (harness.deleted, cached.run) == ([], submitted.run)
    assert [status["phase"] for status in await harness.sync()] == ["Queued"]


async def test_status_is_not_written_when_it_is_outdated_before_its_turn(
    harness: StatusHarness,
) -> None:
    await harness.apply(cluster.job())
    await harness.sync()
    harness.blocking["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    await harness.status_sync.run_once()
    assert len(harness.status_queue) == 1
    harness.blocking.clear()
    assert await harness.sync() == []

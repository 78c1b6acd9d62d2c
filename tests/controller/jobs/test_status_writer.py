"""Statuses that the API server does not accept are retried, and do not delay others for long."""

import asyncio
import itertools

import pytest
from structlog.testing import capture_logs

from tests.controller import cluster
from tests.controller.jobs.conftest import StatusHarness
from workron.core.states import Reason
from workron.store.types import Outcome, Session
from workron_controller.jobs.status_writer import PendingStatus
from workron_controller.kube import errors
from workron_controller.kube.conditions import StatusReason


async def test_newest_status_is_written_when_the_server_answers_again(
    harness: StatusHarness, session: Session
) -> None:
    await harness.apply(cluster.job())
    harness.write_error = errors.UnreachableError("connection refused")
    assert await harness.sync() == []
    [one] = await cluster.claimed(harness.store, session)
    await cluster.ended(harness.store, session, one)
    harness.write_error = None
    assert [status["phase"] for status in await harness.sync()] == ["Succeeded"]


async def test_rejection_is_written_once(harness: StatusHarness) -> None:
    await harness.apply(cluster.job(argv=["x"]))
    [status] = await harness.sync()
    assert status["reason"] == "InvalidSpec"
    assert await harness.sync() == []


async def test_rejection_is_recorded_as_an_event_when_its_status_is_written(
    harness: StatusHarness,
) -> None:
    await harness.apply(cluster.job(argv=["x"]))
    harness.write_error = errors.UnreachableError("connection refused")
    await harness.sync()
    assert harness.events == []
    harness.write_error = None
    await harness.sync()
    await harness.sync()
    assert [event.cause.reason for event in harness.events] == ["InvalidSpec"]


async def test_no_event_is_recorded_when_another_leader_has_reported_the_rejection(
    harness: StatusHarness,
) -> None:
    raw = cluster.job(argv=["x"])
    await harness.apply(raw)
    [status] = await harness.sync()
    harness.events.clear()
    # The new leader has the listed status, and has written none.
    harness.handler.objects.remove(cluster.uid_of(raw))
    await harness.apply(cluster.with_status(raw, **{**status, "message": "of another version"}))
    assert len(await harness.sync()) == 1
    assert harness.events == []


async def test_jobs_that_wait_for_the_same_namespace_share_an_event(
    harness: StatusHarness, session: Session
) -> None:
    harness.blocking["default", "default"] = StatusReason(
        "NamespaceNotEnabled", "kubectl create rolebinding"
    )
    for name in ("one", "two"):
        await harness.apply(cluster.job(name))
    await harness.sync()
    first, second = harness.events
    assert (first.cause.message, first.name) == ("kubectl create rolebinding", second.name)
    harness.blocking.clear()
    for one in await cluster.claimed(harness.store, session, 2):
        await cluster.ended(
            harness.store,
            session,
            one,
            outcome=Outcome.FAILED,
            reason=Reason.EXIT_CODE,
            exit_code=3,
        )
    assert [status["phase"] for status in await harness.sync()] == ["Failed", "Failed"]
    assert len(harness.events) == 2


async def test_pauses_between_writes_grow_when_the_status_is_forbidden(
    harness: StatusHarness,
) -> None:
    await harness.apply(cluster.job())
    harness.write_error = errors.ForbiddenError("403")
    attempts: list[float] = []
    with capture_logs() as logs:
        for _ in range(4 * 1_300):
            before = harness.attempts
            await harness.sync(seconds=0.25)
            attempts += [harness.clock.monotonic()] * (harness.attempts - before)
    assert [later - one for one, later in itertools.pairwise(attempts)] == [
        1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300,
    ]  # fmt: skip
    assert [one["event"] for one in logs] == ["status not written"] * len(attempts)
    harness.blocking["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    await harness.sync(1)
    harness.clock.advance(1)
    assert (harness.status_queue.deferred, harness.writer.lag) == (1, 0)
    harness.write_error = None
    assert [status["phase"] for status in await harness.sync(300)] == ["Waiting"]
    harness.blocking.clear()
    harness.write_error = errors.ForbiddenError("403")
    await harness.sync(2)
    harness.write_error = None
    assert len(await harness.sync(1)) == 1


async def test_other_objects_and_final_statuses_are_written_when_one_status_is_forbidden(
    harness: StatusHarness, session: Session
) -> None:
    await harness.apply(cluster.job("closed"))
    harness.write_error = errors.ForbiddenError("403")
    for _ in range(6):
        await harness.sync(64)
    [one] = await cluster.claimed(harness.store, session)
    harness.write_error = None
    await harness.apply(cluster.job("open"))
    assert [status["phase"] for status in await harness.sync(1)] == ["Queued"]
    await cluster.ended(harness.store, session, one)
    assert [status["phase"] for status in await harness.sync(1)] == ["Succeeded"]


@pytest.mark.parametrize("write_error", [errors.UnauthorizedError, errors.AccessError])
async def test_all_statuses_are_retried_soon_when_our_credentials_are_refused(
    harness: StatusHarness, write_error: type[errors.ApiError]
) -> None:
    await harness.apply(cluster.job())
    harness.write_error = write_error("the token is wrong")
    for _ in range(10):
        await harness.sync(100)
    harness.write_error = None
    assert [status["phase"] for status in await harness.sync(2)] == ["Queued"]


async def test_lag_is_that_of_the_status_that_waits_longest(harness: StatusHarness) -> None:
    await harness.apply(cluster.job())
    assert harness.writer.lag == 0
    harness.write_error = errors.UnreachableError("connection refused")
    await harness.sync()
    harness.clock.advance(20)
    await harness.apply(cluster.job("later"))
    await harness.status_sync.run_once()
    harness.blocking["default", "default"] = StatusReason("PoolNotFound", "no WorkerPool default")
    await harness.status_sync.run_once()
    harness.clock.advance(5)
    assert harness.writer.lag == 25
    harness.write_error = None
    await harness.sync(0)
    assert harness.writer.lag == 0


async def test_lag_starts_at_zero_when_this_replica_leads_again(harness: StatusHarness) -> None:
    await harness.apply(cluster.job())
    await harness.status_sync.run_once()
    harness.clock.advance(20)
    harness.status_queue.clear()
    work = asyncio.create_task(harness.writer.run())
    await asyncio.sleep(0)
    assert harness.writer.lag == 0
    work.cancel()


async def test_writer_writes_statuses_until_it_is_cancelled(
    harness: StatusHarness,
) -> None:
    cached = await harness.apply(cluster.job())
    work = asyncio.create_task(harness.writer.run())
    for number in itertools.count():
        harness.writer.enqueue(
            PendingStatus(cached.uid, {"phase": "Queued", "n": number}, is_final=True)
        )
        await asyncio.sleep(0)
        if len(harness.written) >= 3:
            break
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_writer_writes_when_it_was_cancelled_and_started_often(
    harness: StatusHarness,
) -> None:
    for _ in range(20):
        work = asyncio.create_task(harness.writer.run())
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    cached = await harness.apply(cluster.job())
    work = asyncio.create_task(harness.writer.run())
    harness.writer.enqueue(PendingStatus(cached.uid, {"phase": "Queued"}, is_final=True))
    async with asyncio.timeout(5):
        while not harness.written:
            await asyncio.sleep(0)
    work.cancel()

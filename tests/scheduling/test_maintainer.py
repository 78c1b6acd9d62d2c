"""The duties of the maintainer, step by step, with a clock that the test advances."""

import asyncio
import dataclasses
import uuid
from typing import Any

import pytest

from tests.scheduling.conftest import ManualClock, job, register_worker, submit, workflow
from workron.core import errors
from workron.core.ids import ClaimId, JobId
from workron.core.states import Reason, State
from workron.scheduling.maintainer import Duty, Maintainer, MaintainerMetrics
from workron.store.api import Store
from workron.store.types import AttemptReport, AuditResult, Outcome, ReapResult


@pytest.fixture
def maintainer(store: Store, clock: ManualClock) -> Maintainer:
    return Maintainer(store, clock, uuid.uuid4())


async def _step_until_idle(maintainer: Maintainer) -> None:
    while await maintainer.step():
        pass


async def _claim(store: Store, run: JobId) -> tuple[Any, Any]:
    session = await register_worker(store)
    [claimed] = await store.claim(session.key, [ClaimId(uuid.uuid4())])
    assert claimed.job >= run
    return session, claimed


async def _state(store: Store, run: JobId) -> tuple[State, Reason | None]:
    row = (await store.list_jobs(run))[0]
    return row.state, row.reason


async def test_job_is_queued_when_its_start_time_has_come(
    store: Store, maintainer: Maintainer, clock: ManualClock
) -> None:
    run = await submit(store, job("later", startAfter="2026-01-01T01:00:00Z"))
    await _step_until_idle(maintainer)
    assert await _state(store, run) == (State.WAITING, Reason.SCHEDULED)
    clock.advance(3601)
    await _step_until_idle(maintainer)
    assert await _state(store, run) == (State.QUEUED, None)


async def test_skips_propagate_to_the_end_of_a_dag(store: Store, maintainer: Maintainer) -> None:
    tasks = [{"name": "t0", "maxAttempts": 1}]
    tasks += [{"name": f"t{n}", "dependsOn": [{"name": f"t{n - 1}"}]} for n in range(1, 30)]
    run = await submit(store, workflow("chain", *tasks))
    session, claimed = await _claim(store, run)
    await store.complete(
        session.key,
        [
            AttemptReport(
                claimed.job, claimed.claim, claimed.fence, Outcome.FAILED, Reason.EXIT_CODE
            )
        ],
    )
    await _step_until_idle(maintainer)
    assert await _state(store, run) == (State.FAILED, Reason.MEMBER_FAILED)


async def test_worker_is_reaped_when_no_heartbeat_arrives_for_a_lease(
    store: Store, maintainer: Maintainer, clock: ManualClock
) -> None:
    run = await submit(store, job("held"))
    await _claim(store, run)
    for _ in range(60):
        await _step_until_idle(maintainer)
        assert (await _state(store, run))[0] is State.RUNNING
        clock.advance(1)
    await _step_until_idle(maintainer)
    assert (await _state(store, run))[0] is State.QUEUED


async def test_worker_is_not_reaped_when_its_heartbeats_arrive(
    store: Store, maintainer: Maintainer, clock: ManualClock
) -> None:
    run = await submit(store, job("held"))
    session, _ = await _claim(store, run)
    for _ in range(30):
        await store.heartbeat(session.key)
        await _step_until_idle(maintainer)
        clock.advance(1)
    assert (await _state(store, run))[0] is State.RUNNING


async def test_no_worker_is_reaped_when_the_maintainer_itself_was_suspended(
    store: Store, maintainer: Maintainer, clock: ManualClock
) -> None:
    run = await submit(store, job("held"))
    await _claim(store, run)
    await _step_until_idle(maintainer)
    clock.advance(3600)
    await _step_until_idle(maintainer)
    assert (await _state(store, run))[0] is State.RUNNING


async def test_rounds_are_shorter_when_a_worker_has_a_short_lease(
    store: Store, maintainer: Maintainer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await register_worker(store)
    heartbeats = await store.list_heartbeats()
    short = [dataclasses.replace(one, lease_seconds=2.0) for one in heartbeats]
    monkeypatch.setattr(store, "list_heartbeats", _answering(short))
    reaped: list[Any] = []
    monkeypatch.setattr(store, "reap", _answering_reap(reaped))
    for _ in range(12):
        await maintainer.step()
        clock.advance(0.25)
    assert reaped


def _answering(answer: Any) -> Any:
    async def call() -> Any:
        return answer

    return call


def _answering_reap(reaped: list[Any]) -> Any:
    async def call(worker: Any, *, version: Any) -> Any:
        reaped.append((worker, version))
        return ReapResult(was_reaped=True)

    return call


async def test_waiting_job_fails_when_its_deadline_has_passed(
    store: Store, maintainer: Maintainer, clock: ManualClock
) -> None:
    run = await submit(store, job("late", deadline="1m"))
    await _step_until_idle(maintainer)
    clock.advance(61)
    await _step_until_idle(maintainer)
    assert await _state(store, run) == (State.FAILED, Reason.DEADLINE_EXCEEDED)


async def test_standby_moves_no_jobs(
    store: Store, maintainer: Maintainer, clock: ManualClock
) -> None:
    other = Maintainer(store, clock, uuid.uuid4())
    await maintainer.step()
    run = await submit(store, job("later", startAfter="2026-01-01T00:00:05Z"))
    clock.advance(6)
    assert await other.step() == 0
    assert (await _state(store, run))[0] is State.WAITING


async def test_standby_is_elected_when_the_lease_of_the_maintainer_expires(
    store: Store, maintainer: Maintainer, clock: ManualClock
) -> None:
    other = Maintainer(store, clock, uuid.uuid4())
    await maintainer.step()
    clock.advance(11)
    run = await submit(store, job("later", startAfter="2026-01-01T00:00:05Z"))
    await _step_until_idle(other)
    assert (await _state(store, run))[0] is State.QUEUED


async def test_maintainer_retries_when_the_store_is_unavailable_and_resigns_at_the_end(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    maintainer = Maintainer(store, clock, uuid.uuid4(), round_seconds=0.0)
    elect, elected, calls = store.elect, asyncio.Event(), []

    async def fail_at_first(holder: uuid.UUID, lease_seconds: float) -> bool:
        calls.append(holder)
        if len(calls) == 1:
            raise errors.StoreUnreachableError("db does not answer")
        answer = await elect(holder, lease_seconds)
        elected.set()
        return answer

    monkeypatch.setattr(store, "elect", fail_at_first)
    run = asyncio.create_task(maintainer.run(store.wait_for_work))
    await elected.wait()
    assert not await elect(uuid.uuid4(), 10.0)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    assert await elect(uuid.uuid4(), 10.0)


async def test_jobs_are_queued_when_a_refresh_of_the_scan_starts_does_not_end(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshing, promoted, promote = asyncio.Event(), asyncio.Event(), store.promote

    async def refresh() -> None:
        refreshing.set()
        await asyncio.Event().wait()

    async def note(limit: int) -> int:
        moved = await promote(limit)
        if refreshing.is_set():
            promoted.set()
        return moved

    monkeypatch.setattr(store, "refresh_scan_starts", refresh)
    monkeypatch.setattr(store, "promote", note)
    maintainer = Maintainer(store, clock, uuid.uuid4())
    await maintainer.step()
    run = asyncio.create_task(maintainer.run(_go_on))
    await promoted.wait()
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_scan_starts_are_refreshed_again_when_a_refresh_has_failed(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[None] = []
    twice = asyncio.Event()

    async def refresh() -> None:
        calls.append(None)
        if len(calls) == 1:
            raise errors.SchemaError("too old")
        twice.set()

    monkeypatch.setattr(store, "refresh_scan_starts", refresh)
    maintainer = Maintainer(store, clock, uuid.uuid4(), round_seconds=0.0)
    await maintainer.step()
    run = asyncio.create_task(maintainer.run(_go_on))
    await twice.wait()
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_maintainer_fails_when_a_refresh_fails_with_an_unknown_error(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refresh() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(store, "refresh_scan_starts", refresh)
    maintainer = Maintainer(store, clock, uuid.uuid4())
    await maintainer.step()
    with pytest.raises(ZeroDivisionError):
        await maintainer.run(_go_on)


async def _go_on(_: float) -> None:
    """Wait for no work."""


async def test_orphaned_claims_are_reaped_in_the_first_round(
    store: Store, maintainer: Maintainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []

    async def reap_orphans(limit: int) -> int:
        limits.append(limit)
        return 0

    monkeypatch.setattr(store, "reap_orphans", reap_orphans)
    await maintainer.step()
    assert limits == [1000]


async def test_audit_continues_after_the_last_job_and_logs_what_it_finds(
    store: Store,
    maintainer: Maintainer,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    behind = []

    async def audit(limit: int, *, after: int = 0) -> AuditResult:
        behind.append(after)
        return AuditResult(missed=limit, last=7)

    monkeypatch.setattr(store, "audit", audit)
    while len(behind) < 2:
        await maintainer.step()
        clock.advance(10)
    assert behind == [0, 7]
    printed = capsys.readouterr()
    assert "jobs wait although their upstreams have ended" in printed.out + printed.err


async def test_moves_of_each_duty_are_counted(store: Store, clock: ManualClock) -> None:
    metrics = MaintainerMetrics(clock)
    maintainer = Maintainer(store, clock, uuid.uuid4(), metrics)
    await _claim(store, await submit(store, job("held")))
    await submit(store, job("late", deadline="1h"))
    await submit(store, job("later", startAfter="2026-01-01T00:00:30Z"))
    for _ in range(70):
        await _step_until_idle(maintainer)
        assert (metrics.is_elected, metrics.round_age) == (True, 0)
        clock.advance(1)
    clock.advance(3600)
    await _step_until_idle(maintainer)
    assert metrics.moved[Duty.PROMOTE] >= 1
    assert (metrics.reaped_workers, metrics.moved[Duty.REAP]) == (1, 1)
    assert metrics.moved[Duty.EXPIRE] == 1


async def test_standby_completes_rounds_until_the_store_fails(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = MaintainerMetrics(clock)
    await Maintainer(store, clock, uuid.uuid4()).step()
    second = Maintainer(store, clock, uuid.uuid4(), metrics)
    assert metrics.why_not_ready()
    await second.step()
    assert (metrics.why_not_ready(), metrics.is_elected) == (None, False)
    monkeypatch.setattr(
        store, "elect", _failing(errors.StoreUnreachableError("db does not answer"))
    )
    clock.advance(2)
    with pytest.raises(errors.StoreUnreachableError):
        await second.step()
    assert metrics.round_age == 2


async def test_missed_jobs_and_the_last_error_are_kept_when_the_maintainer_fails(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = MaintainerMetrics(clock)

    async def audit(_: int, *, after: int) -> AuditResult:
        return AuditResult(missed=3, last=after)

    monkeypatch.setattr(store, "audit", audit)
    monkeypatch.setattr(store, "propagate", _failing(errors.SchemaError("too new")))
    with pytest.raises(errors.SchemaError):
        await Maintainer(store, clock, uuid.uuid4(), metrics).run(store.wait_for_work)
    assert metrics.missed_jobs == 3
    assert metrics.why_hopeless == "this maintainer has failed: too new"


def _failing(error: Exception) -> Any:
    async def call(*_: Any) -> Any:
        raise error

    return call

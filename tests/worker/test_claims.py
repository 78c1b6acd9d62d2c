"""The claims of an agent: their reports and releases, the exchange with the store, the batch."""

import asyncio
import contextlib
import random
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from tests.worker.agent_harness import AdjustableClock
from workron.core import errors
from workron.core.ids import ClaimId, Fence, JobId, SessionKey
from workron.store.api import WorkerStore
from workron.store.types import (
    AttemptReport,
    ClaimedJob,
    ClaimRef,
    CompleteReply,
    HeartbeatReply,
    HeldClaim,
    LossKind,
    Outcome,
    ReportResult,
    Signal,
)
from workron_worker.claims import (
    _INITIAL_BATCH,
    _MANY_REPORTS,
    _MIN_BATCH,
    ClaimBatchSize,
    ClaimExchange,
    Claims,
    ClaimSnapshot,
    Disposition,
    HeartbeatActions,
    RunningClaim,
    read_heartbeat,
)
from workron_worker.config import AgentDependencies, Slots
from workron_worker.runner_client import RunnerExecutor
from workron_worker.store_retry import StoreRetry

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_KEY = SessionKey(uuid.uuid4())


@pytest.fixture
def claims() -> Claims:
    return Claims(random.Random())


def _start(claims: Claims) -> tuple[RunningClaim, AttemptReport]:
    [claim] = claims.request(1, _NOW)
    ref = ClaimRef(claim, Fence(7))
    job = cast("ClaimedJob", type("Claim", (), {"claim": claim, "ref": ref})())
    return claims.start(job, now=0.0), AttemptReport(JobId(1), *ref, Outcome.SUCCEEDED)


def test_claim_is_reported_once_and_known_until_the_answer(claims: Claims) -> None:
    running, report = _start(claims)
    claims.end(running, report)
    assert claims.take_reports() == [report]
    assert claims.take_reports() == []
    assert claims.snapshot().known == {report.claim}
    claims.forget([report.claim])
    assert claims.snapshot().known == frozenset()


@pytest.mark.parametrize("disposition", [Disposition.REPORT, Disposition.RELEASE])
def test_claim_is_released_when_it_has_no_report(claims: Claims, disposition: Disposition) -> None:
    running, _ = _start(claims)
    running.disposition = disposition
    claims.end(running, None)
    assert claims.take_releases() == {None: [running.job.ref]}


def test_releases_are_grouped_by_how_the_claims_were_lost(claims: Claims) -> None:
    refs = []
    for loss in (LossKind.TOGETHER, None, LossKind.ALONE, LossKind.TOGETHER):
        running, _ = _start(claims)
        running.disposition = Disposition.RELEASE
        running.loss = loss
        claims.end(running, None)
        refs.append(running.job.ref)
    assert claims.take_releases() == {
        LossKind.TOGETHER: [refs[0], refs[3]],
        None: [refs[1]],
        LossKind.ALONE: [refs[2]],
    }


@pytest.mark.parametrize("disposition", [Disposition.REPORT, Disposition.RELEASE])
def test_sent_claims_count_until_they_are_forgotten(
    claims: Claims, disposition: Disposition
) -> None:
    running, report = _start(claims)
    running.disposition = disposition
    claims.end(running, report)
    claims.take_reports()
    claims.take_releases()
    assert claims.count == 1
    claims.forget([report.claim])
    assert claims.count == 0


def test_sent_claims_do_not_count_when_the_session_is_lost(claims: Claims) -> None:
    running, report = _start(claims)
    claims.end(running, report)
    claims.take_reports()
    claims.forget_all()
    assert claims.count == 0
    # The late answer to a call of the lost session.
    claims.forget([report.claim])
    assert claims.count == 0


def test_claim_is_not_reported_when_it_was_reaped(claims: Claims) -> None:
    running, report = _start(claims)
    running.disposition = Disposition.DROP
    claims.end(running, report)
    assert claims.count == 0
    assert claims.snapshot().known == frozenset()


def test_nothing_is_reported_when_the_session_is_lost(claims: Claims) -> None:
    ended, report = _start(claims)
    claims.end(ended, report)
    claims.release_unknown([ClaimRef(claims.request(1, _NOW)[0], Fence(7))])
    running, late = _start(claims)
    claims.forget_all()
    assert (claims.take_reports(), claims.take_releases()) == ([], {})
    claims.end(running, late)
    assert claims.count == 0


def test_each_claim_has_its_own_id(claims: Claims) -> None:
    assert len(set(claims.request(100, _NOW))) == 100


A, B = ClaimId(uuid.UUID(int=1)), ClaimId(uuid.UUID(int=2))
NONE: frozenset[ClaimId] = frozenset()


def _reply(*held: ClaimId, signal: Signal | None = None) -> HeartbeatReply:
    rows = [HeldClaim(JobId(1), claim, Fence(7), signal) for claim in held]
    return HeartbeatReply(rows, is_draining=False, database="x")


def _running(*claims: ClaimId) -> ClaimSnapshot:
    return ClaimSnapshot(frozenset(claims), frozenset(claims))


def test_heartbeat_requests_nothing_when_both_sides_agree() -> None:
    actions = read_heartbeat(_reply(A, B), _running(A, B), _running(A, B))
    assert actions == HeartbeatActions(NONE, NONE, [])


def test_command_is_dropped_when_the_store_no_longer_lists_its_claim() -> None:
    assert read_heartbeat(_reply(B), _running(A, B), _running(A, B)).drop == {A}


def test_claim_is_not_dropped_when_it_was_granted_during_the_heartbeat() -> None:
    assert read_heartbeat(_reply(), _running(), _running(A)).drop == NONE


def test_claim_is_not_released_when_it_was_granted_during_the_heartbeat() -> None:
    assert read_heartbeat(_reply(A), _running(), _running(A)).release == []


def test_claim_is_not_dropped_when_it_ended_during_the_heartbeat() -> None:
    assert read_heartbeat(_reply(), _running(A), _running()).drop == NONE


def test_unknown_claim_is_released_under_its_own_fence() -> None:
    assert read_heartbeat(_reply(A), _running(), _running()).release == [ClaimRef(A, Fence(7))]


def test_ended_claim_is_not_released_before_its_report() -> None:
    ended = ClaimSnapshot(frozenset(), frozenset({A}))
    assert read_heartbeat(_reply(A), _running(A), ended).release == []


def test_claim_is_not_released_when_its_report_was_answered_during_the_heartbeat() -> None:
    assert read_heartbeat(_reply(A), _running(A), _running()).release == []


@pytest.mark.parametrize("signal", [Signal.CANCEL, Signal.EXPIRE])
def test_command_is_killed_when_its_job_is_cancelled_or_expired(signal: Signal) -> None:
    assert read_heartbeat(_reply(A, signal=signal), _running(A), _running(A)).kill == {A}


def test_command_continues_when_its_job_is_suspended() -> None:
    actions = read_heartbeat(_reply(A, signal=Signal.SUSPEND), _running(A), _running(A))
    assert actions == HeartbeatActions(NONE, NONE, [])


class _FakeStore:
    """Answers reports when the test lets it."""

    def __init__(self) -> None:
        self.report_counts: list[int] = []
        self.may_answer = asyncio.Event()
        self.error: errors.StoreError | None = None

    async def complete(
        self, _: SessionKey, reports: Sequence[AttemptReport], claims: Sequence[ClaimId]
    ) -> CompleteReply:
        del claims
        self.report_counts.append(len(reports))
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return CompleteReply([ReportResult.ACCEPTED] * len(reports))


class _ExchangeHarness:
    def __init__(self) -> None:
        self.store = _FakeStore()
        self.claims = Claims(random.Random())
        clock = AdjustableClock()
        dependencies = AgentDependencies(
            cast("WorkerStore", self.store),
            cast("RunnerExecutor", None),
            Slots(1),
            clock,
            random.Random(),
        )
        self.exchange = ClaimExchange(dependencies, self.claims, StoreRetry(clock, timedelta(0)))

    def end(self, count: int) -> None:
        """Let that many commands end."""
        for _ in range(count):
            self.claims.end(*_start(self.claims))
            self.exchange.report_added()

    @contextlib.asynccontextmanager
    async def under_way(self) -> AsyncIterator[asyncio.Task[Any]]:
        """Send one report, which the store does not answer yet."""
        self.end(1)
        task = asyncio.ensure_future(self.exchange.exchange(_KEY, ()))
        while not self.store.report_counts:
            await asyncio.sleep(0)
        yield task


@pytest.fixture
async def harness() -> _ExchangeHarness:
    return _ExchangeHarness()


async def test_many_reports_are_sent_at_once_when_an_exchange_is_under_way(
    harness: _ExchangeHarness,
) -> None:
    async with harness.under_way() as exchange:
        harness.end(_MANY_REPORTS)
        await harness.exchange.wait_for_many_reports()
        parallel = asyncio.ensure_future(harness.exchange.report_in_parallel(_KEY))
        while len(harness.store.report_counts) < 2:
            await asyncio.sleep(0)
        assert harness.store.report_counts == [1, _MANY_REPORTS]
        assert harness.claims.count == 1 + _MANY_REPORTS
        harness.store.may_answer.set()
        await asyncio.gather(exchange, parallel)
    assert harness.claims.count == 0
    assert harness.claims.snapshot().known == frozenset()


async def test_few_reports_wait_for_the_next_exchange(harness: _ExchangeHarness) -> None:
    async with harness.under_way() as exchange:
        harness.end(_MANY_REPORTS - 1)
        await harness.exchange.report_in_parallel(_KEY)
        harness.store.may_answer.set()
        await exchange
    assert harness.store.report_counts == [1]
    assert harness.claims.report_count == _MANY_REPORTS - 1


async def test_nothing_is_reported_in_parallel_when_no_exchange_is_under_way(
    harness: _ExchangeHarness,
) -> None:
    harness.end(_MANY_REPORTS)
    await harness.exchange.wait_for_many_reports()
    await harness.exchange.report_in_parallel(_KEY)
    assert harness.store.report_counts == []


async def test_reports_still_count_when_the_store_is_unavailable(
    harness: _ExchangeHarness,
) -> None:
    harness.store.error = errors.StoreUnreachableError("unavailable")
    harness.store.may_answer.set()
    harness.end(3)
    with pytest.raises(errors.StoreUnreachableError):
        await harness.exchange.exchange(_KEY, ())
    assert harness.claims.count == 3


def test_batch_doubles_up_to_the_free_slots_when_all_claims_are_granted() -> None:
    batch = ClaimBatchSize(1000)
    requested = []
    for _ in range(4):
        requested.append(batch.limit(200))
        has_more = batch.adjust(requested=requested[-1], granted=requested[-1])
        assert has_more is (requested[-1] < 200)
    assert requested == [_INITIAL_BATCH, 2 * _INITIAL_BATCH, 4 * _INITIAL_BATCH, 200]


def test_batch_is_at_most_half_of_the_slots_when_there_are_many() -> None:
    batch = ClaimBatchSize(1000)
    for _ in range(10):
        batch.adjust(requested=batch.limit(1000), granted=batch.limit(1000))
    assert batch.limit(1000) == 500


def test_batch_fills_all_slots_when_there_are_few() -> None:
    assert ClaimBatchSize(16).limit(16) == 16


def test_batch_shrinks_to_its_minimum_when_few_claims_are_granted() -> None:
    batch = ClaimBatchSize(1000)
    assert not batch.adjust(requested=batch.limit(1000), granted=_MIN_BATCH)
    assert batch.limit(1000) == 2 * _MIN_BATCH
    assert not batch.adjust(requested=2 * _MIN_BATCH, granted=1)
    assert batch.limit(1000) == _MIN_BATCH
    assert not batch.adjust(requested=_MIN_BATCH, granted=0)
    assert batch.limit(1000) == _MIN_BATCH


def test_batch_grows_again_when_more_claims_are_granted() -> None:
    batch = ClaimBatchSize(1000)
    batch.adjust(requested=_INITIAL_BATCH, granted=1)
    for step in range(5):
        requested = batch.limit(1000)
        assert requested == _MIN_BATCH * 2**step
        assert batch.adjust(requested=requested, granted=requested)


def test_batch_keeps_its_size_when_most_claims_are_granted() -> None:
    batch = ClaimBatchSize(1000)
    batch.adjust(requested=_INITIAL_BATCH, granted=_INITIAL_BATCH)
    assert not batch.adjust(requested=2 * _INITIAL_BATCH, granted=2 * _INITIAL_BATCH - 1)
    assert batch.limit(1000) == 2 * _INITIAL_BATCH


def test_batch_keeps_its_size_when_few_slots_are_free() -> None:
    batch = ClaimBatchSize(1000)
    batch.adjust(requested=4 * _INITIAL_BATCH, granted=4 * _INITIAL_BATCH)
    assert not batch.adjust(requested=batch.limit(1), granted=1)
    assert batch.limit(1000) == 8 * _INITIAL_BATCH


def test_batch_keeps_its_size_when_nothing_was_requested() -> None:
    batch = ClaimBatchSize(1000)
    assert not batch.adjust(requested=0, granted=0)
    assert batch.limit(1000) == _INITIAL_BATCH

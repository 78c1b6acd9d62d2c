"""Ends for claims: what is told when, and what is held until it was answered."""

import asyncio
import contextlib
import random
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest

from tests.worker.shop import RealClock
from workron.core import errors
from workron.core.ids import ClaimId, Fence, JobId, SessionKey
from workron.store.api import WorkerStore
from workron.store.types import AttemptReport, ClaimedJob, CompleteReply, Outcome, ReportResult
from workron_worker.claims import ClaimExchange, Claims
from workron_worker.config import AgentDependencies, Slots
from workron_worker.runner_client import RunnerExecutor
from workron_worker.store_retry import StoreRetry

_KEY = SessionKey(uuid.uuid4())
_MANY = 200


class _Door:
    """Answers when it is let to."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.may_answer = asyncio.Event()
        self.error: errors.StoreError | None = None

    async def complete(
        self, _: SessionKey, ends: Sequence[AttemptReport], claims: Sequence[ClaimId]
    ) -> CompleteReply:
        del claims
        self.told.append(len(ends))
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return CompleteReply([ReportResult.ACCEPTED] * len(ends))


class _Scene:
    def __init__(self) -> None:
        self.door = _Door()
        self.ledger = Claims(random.Random())
        clock = RealClock()
        dependencies = AgentDependencies(
            cast("WorkerStore", self.door), cast("RunnerExecutor", None), Slots(1), clock,
            random.Random(),
        )  # fmt: skip
        self.exchange = ClaimExchange(dependencies, self.ledger, StoreRetry(clock, timedelta(0)))

    def end(self, count: int) -> None:
        """Have so many commands end."""
        for claim in self.ledger.request(count, RealClock().now()):
            claimed = cast("ClaimedJob", type("Claim", (), {"claim": claim})())
            running = self.ledger.start(claimed, now=0.0)
            self.ledger.end(running, AttemptReport(JobId(1), claim, Fence(1), Outcome.SUCCEEDED))
            self.exchange.report_added()

    @contextlib.asynccontextmanager
    async def under_way(self) -> AsyncIterator[asyncio.Task[Any]]:
        """Have an exchange of one end be under way."""
        self.end(1)
        task = asyncio.ensure_future(self.exchange.exchange(_KEY, ()))
        while not self.door.told:
            await asyncio.sleep(0)
        yield task


@pytest.fixture
async def scene() -> _Scene:
    return _Scene()


async def test_many_ends_do_not_wait_for_the_exchange_that_is_under_way(scene: _Scene) -> None:
    async with scene.under_way() as exchange:
        scene.end(_MANY)
        await scene.exchange.wait_for_many_reports()
        beside = asyncio.ensure_future(scene.exchange.report_in_parallel(_KEY))
        while len(scene.door.told) < 2:
            await asyncio.sleep(0)
        assert scene.door.told == [1, _MANY]
        assert scene.ledger.count == 1 + _MANY
        scene.door.may_answer.set()
        await asyncio.gather(exchange, beside)
    assert not scene.ledger.count
    assert scene.ledger.snapshot().known == frozenset()


async def test_few_ends_wait_for_the_next_exchange(scene: _Scene) -> None:
    async with scene.under_way() as exchange:
        scene.end(_MANY - 1)
        await scene.exchange.report_in_parallel(_KEY)
        scene.door.may_answer.set()
        await exchange
    assert scene.door.told == [1]
    assert scene.ledger.report_count == _MANY - 1


async def test_nothing_is_reported_beside_no_exchange(scene: _Scene) -> None:
    scene.end(_MANY)
    await scene.exchange.wait_for_many_reports()
    await scene.exchange.report_in_parallel(_KEY)
    assert scene.door.told == []


async def test_what_was_told_to_a_store_that_is_away_is_still_held(scene: _Scene) -> None:
    scene.door.error = errors.StoreUnreachableError("away")
    scene.door.may_answer.set()
    scene.end(3)
    with pytest.raises(errors.StoreUnreachableError):
        await scene.exchange.exchange(_KEY, ())
    assert scene.ledger.count == 3

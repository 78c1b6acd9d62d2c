"""Synthetic workers that only claim, complete and send heartbeats, as fast as the store answers.

They show how the database handles the load: each call is timed, and no agent is involved. A feeder
keeps jobs ready, in workflows, and a real maintainer process completes those. A call without an
answer is repeated, as a worker does, and its time goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from bench import draining
from bench.draining import Program
from bench.ours import plans
from bench.ours.program import WORKRON
from bench.ours.stock import Stock
from workron.core import errors, ids
from workron.core.ids import SessionKey
from workron.store import connect
from workron.store.api import WorkerStore
from workron.store.types import AttemptReport, ClaimedJob, Outcome, Registration

_WORKERS: Final = 2
_BATCH: Final = 100
_STEP: Final = 10_000
"""The number of jobs in one insert."""
_HEARTBEAT_SECONDS: Final = 2.0
_IDLE_SECONDS: Final = 0.02
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Measurements of a load over some seconds."""

    rate: float
    """Jobs a second."""
    claim: float
    """The 99th percentile of the claim latency, in milliseconds."""
    heartbeat: float
    """The longest latency of a heartbeat, in milliseconds."""


@dataclass(slots=True)
class Load:
    """A load that runs until its context ends."""

    stock: Stock
    backlog: int
    ended: int = 0
    claims: list[float] = field(default_factory=list)
    heartbeats: list[float] = field(default_factory=list)
    wants_jobs: asyncio.Event = field(default_factory=asyncio.Event)
    is_fed: bool = True

    async def warm(self) -> None:
        """Wait until each worker has claimed more than once, so all connections are prepared."""
        while len(self.claims) <= 2 * _WORKERS:  # noqa: ASYNC110 - it is a count
            await asyncio.sleep(_IDLE_SECONDS)

    async def during(self, seconds: float) -> LoadResult:
        """Measure for some seconds."""
        self.claims.clear()
        self.heartbeats.clear()
        before, began = self.ended, time.perf_counter()
        await asyncio.sleep(seconds)
        rate = (self.ended - before) / (time.perf_counter() - began)
        return LoadResult(
            rate, _percentile_99(self.claims or [seconds * 1e3]), max(self.heartbeats, default=0.0)
        )

    async def drained(self, timeout_seconds: float) -> float:
        """Stop the feeder, and return the seconds until all remaining jobs have ended."""
        self.is_fed = False
        began = time.perf_counter()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                while self.ended < self.stock.queued:  # noqa: ASYNC110 - (the same)
                    await asyncio.sleep(_IDLE_SECONDS)
        return time.perf_counter() - began

    async def feed(self) -> None:
        """Keep the wanted number of jobs ready."""
        while True:
            if self.is_fed and self.stock.queued - self.ended < self.backlog:
                await self.stock.queue(_STEP)
            else:
                self.wants_jobs.clear()
                await self.wants_jobs.wait()

    async def work(self, store: WorkerStore, key: SessionKey) -> None:
        """Claim and complete jobs until cancelled."""
        while True:
            claimed = await self._claim(store, key)
            if claimed:
                await self._complete(store, key, claimed)
            else:
                await asyncio.sleep(_IDLE_SECONDS)

    async def _complete(
        self, store: WorkerStore, key: SessionKey, claimed: Sequence[ClaimedJob]
    ) -> None:
        ends = [
            AttemptReport(one.job, one.claim, one.fence, Outcome.SUCCEEDED, exit_code=0)
            for one in claimed
        ]
        await _retry(lambda: store.complete(key, ends))
        self.ended += len(ends)
        self.wants_jobs.set()

    async def _claim(self, store: WorkerStore, key: SessionKey) -> Sequence[ClaimedJob]:
        claims = ids.mint_claims(plans.Clock().now(), plans.RNG, _BATCH)
        with _timed(self.claims):
            return await _retry(lambda: store.claim(key, claims))

    async def heartbeat(self, store: WorkerStore, key: SessionKey) -> None:
        """Send heartbeats until cancelled."""
        while True:
            with _timed(self.heartbeats):
                await _retry(lambda: store.heartbeat(key))
            await asyncio.sleep(_HEARTBEAT_SECONDS)


@contextlib.asynccontextmanager
async def running(url: str, stock: Stock, backlog: int) -> AsyncIterator[Load]:
    """Run a load on a database, with a backlog of ready jobs."""
    load = Load(stock, backlog)
    maintainer = Program([str(WORKRON), "maintain", "--store", url])
    submitter = await connect.connect(url, clock=plans.Clock(), rng=plans.RNG)
    token = await submitter.ensure_pool("default", "default")
    with draining.started([maintainer]):
        stores = [
            await connect.connect_worker(url, clock=plans.Clock(), rng=plans.RNG)
            for _ in range(_WORKERS)
        ]
        keys = [await _registered(store, token) for store in stores]
        tasks = [asyncio.create_task(load.feed())]
        for store, key in zip(stores, keys, strict=True):
            tasks += map(asyncio.create_task, (load.work(store, key), load.heartbeat(store, key)))
        try:
            yield load
        finally:
            await _ended(tasks)
            for one in (submitter, *stores):
                await one.close()


async def _registered(store: WorkerStore, token: str) -> SessionKey:
    session = await store.register(
        Registration(token, f"load-{uuid.uuid4()}", uuid.uuid4(), _BATCH)
    )
    return session.key


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel the tasks, and raise the error of one that failed."""
    for one in tasks:
        one.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result


async def _retry(call: Callable[[], Awaitable[_T]]) -> _T:
    while True:
        try:
            return await call()
        except errors.TRANSIENT:
            await asyncio.sleep(_IDLE_SECONDS)


@contextlib.contextmanager
def _timed(latencies: list[float]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    latencies.append((time.perf_counter() - began) * 1e3)


def _percentile_99(values: Sequence[float]) -> float:
    """Return the 99th percentile, or the maximum of fewer than a hundred values."""
    return sorted(values)[-1 - len(values) // 100]

"""Workers that do nothing but claim, complete and beat, at the worker's door, as fast as they can.

For how a database bears what it is put under: each call is timed by itself, and nothing of an agent
stands between. A feeder keeps jobs ready, in workflows, and a maintainer ends those; it is the real
program. Who is not answered asks again, as a worker does, and the time runs on.
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
"""So many jobs are brought at once."""
_BEAT_SECONDS: Final = 2.0
_IDLE_SECONDS: Final = 0.02
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a load for some time."""

    rate: float
    """Jobs a second."""
    claim: float
    """Of all claims the 99th of a hundred, in milliseconds."""
    beat: float
    """The longest that a beat took, in milliseconds."""


@dataclass(slots=True)
class Load:
    """A load that goes on until the context is left."""

    stock: Stock
    backlog: int
    ended: int = 0
    claims: list[float] = field(default_factory=list)
    beats: list[float] = field(default_factory=list)
    hungry: asyncio.Event = field(default_factory=asyncio.Event)
    is_fed: bool = True

    async def warm(self) -> None:
        """Wait until each worker has claimed more than once: all is connected and prepared."""
        while len(self.claims) <= 2 * _WORKERS:  # noqa: ASYNC110 - it is a count
            await asyncio.sleep(_IDLE_SECONDS)

    async def during(self, seconds: float) -> Seen:
        """Look on for so long."""
        self.claims.clear()
        self.beats.clear()
        before, began = self.ended, time.perf_counter()
        await asyncio.sleep(seconds)
        rate = (self.ended - before) / (time.perf_counter() - began)
        return Seen(rate, _late(self.claims or [seconds * 1e3]), max(self.beats, default=0.0))

    async def drained(self, at_most: float) -> float:
        """Feed it no more, and tell in how many seconds all that is left has ended."""
        self.is_fed = False
        began = time.perf_counter()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most):
                while self.ended < self.stock.queued:  # noqa: ASYNC110 - (the same)
                    await asyncio.sleep(_IDLE_SECONDS)
        return time.perf_counter() - began

    async def feed(self) -> None:
        """Keep as many ready as are wanted."""
        while True:
            if self.is_fed and self.stock.queued - self.ended < self.backlog:
                await self.stock.queue(_STEP)
            else:
                self.hungry.clear()
                await self.hungry.wait()

    async def work(self, door: WorkerStore, key: SessionKey) -> None:
        """Claim and complete for ever."""
        while True:
            claimed = await self._claim(door, key)
            if claimed:
                await self._complete(door, key, claimed)
            else:
                await asyncio.sleep(_IDLE_SECONDS)

    async def _complete(
        self, door: WorkerStore, key: SessionKey, claimed: Sequence[ClaimedJob]
    ) -> None:
        ends = [
            AttemptReport(one.job, one.claim, one.fence, Outcome.SUCCEEDED, exit_code=0)
            for one in claimed
        ]
        await _insist(lambda: door.complete(key, ends))
        self.ended += len(ends)
        self.hungry.set()

    async def _claim(self, door: WorkerStore, key: SessionKey) -> Sequence[ClaimedJob]:
        claims = ids.mint_claims(plans.Clock().now(), plans.RNG, _BATCH)
        with _timed(self.claims):
            return await _insist(lambda: door.claim(key, claims))

    async def beat(self, door: WorkerStore, key: SessionKey) -> None:
        """Beat for ever."""
        while True:
            with _timed(self.beats):
                await _insist(lambda: door.heartbeat(key))
            await asyncio.sleep(_BEAT_SECONDS)


@contextlib.asynccontextmanager
async def running(url: str, stock: Stock, backlog: int) -> AsyncIterator[Load]:
    """Run one over a database, with so many jobs ready as long as it is fed."""
    load = Load(stock, backlog)
    maintainer = Program([str(WORKRON), "maintain", "--store", url])
    person = await connect.connect(url, clock=plans.Clock(), rng=plans.RNG)
    token = await person.ensure_pool("default", "default")
    with draining.started([maintainer]):
        doors = [
            await connect.connect_worker(url, clock=plans.Clock(), rng=plans.RNG)
            for _ in range(_WORKERS)
        ]
        keys = [await _registered(door, token) for door in doors]
        tasks = [asyncio.create_task(load.feed())]
        for door, key in zip(doors, keys, strict=True):
            tasks += map(asyncio.create_task, (load.work(door, key), load.beat(door, key)))
        try:
            yield load
        finally:
            await _ended(tasks)
            for one in (person, *doors):
                await one.close()


async def _registered(door: WorkerStore, token: str) -> SessionKey:
    session = await door.register(Registration(token, f"load-{uuid.uuid4()}", uuid.uuid4(), _BATCH))
    return session.key


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    """End them, and tell what one of them has died of."""
    for one in tasks:
        one.cancel()
    for said in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(said, Exception):
            raise said


async def _insist(call: Callable[[], Awaitable[_T]]) -> _T:
    while True:
        try:
            return await call()
        except errors.TRANSIENT:
            await asyncio.sleep(_IDLE_SECONDS)


@contextlib.contextmanager
def _timed(seen: list[float]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seen.append((time.perf_counter() - began) * 1e3)


def _late(seen: Sequence[float]) -> float:
    """Give the 99th of a hundred, and of fewer the last."""
    return sorted(seen)[-1 - len(seen) // 100]

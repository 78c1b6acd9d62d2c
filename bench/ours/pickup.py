"""Measures how soon a job starts in an idle system, and how soon that is possible at all.

A sample is in milliseconds and starts just before the job is committed. For Workron it ends when
the agent passes the job to its executor.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, Never, cast
from unittest import mock

import asyncpg
import structlog
from asyncpg.transaction import Transaction

from bench import server
from bench.figure import Against, Figure, Goal, Side
from bench.ours import plans
from workron.core.ids import ClaimId
from workron.store import connect
from workron.store.postgres.pool import open_pool
from workron.store.postgres.store import PostgresStore
from workron.store.types import Registration
from workron_worker.agent import Agent
from workron_worker.config import AgentDependencies, Slots
from workron_worker.executor import CommandEnd, CommandTask, OnEnd, OnOutput
from workron_worker.runner_client import RunnerExecutor

Sample = Callable[[], Awaitable[float]]

_WARM_UP = 5
"""The first statements of a session take longer; the system is idle here, not new."""
_CLAIM = (
    "WITH one AS (SELECT id FROM waiting ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)"
    " DELETE FROM waiting USING one WHERE waiting.id = one.id RETURNING waiting.id"
)


def _drop_event(*_: object) -> Never:
    raise structlog.DropEvent


@contextlib.contextmanager
def _recorded_commits() -> Iterator[list[float]]:
    """Record when a transaction of this process, such as a submission, is about to be committed."""
    commits: list[float] = []
    usual = Transaction.__aexit__

    async def recorded(transaction: Transaction, *failed: Any) -> None:
        commits.append(time.perf_counter())
        await usual(transaction, *failed)

    with mock.patch.object(Transaction, "__aexit__", recorded):
        yield commits


class _Null:
    """An executor that runs nothing and records when a job is started."""

    is_ready = True

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.at = 0.0

    async def keep_ready(self, on_ready: object) -> None:
        """It is always ready."""

    def start(self, task: CommandTask, on_end: OnEnd, on_output: OnOutput | None = None) -> None:
        del task, on_output
        self.at = time.perf_counter()
        self.begun.set()
        asyncio.get_running_loop().call_soon(on_end, CommandEnd(exit_code=0))

    def kill(self, claim: ClaimId) -> None:
        """Nothing runs."""

    def set_deadline(self, at: float) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing runs."""


def figures(dsn: str, samples: int, others: Sequence[Against]) -> Iterator[Figure]:
    """Measure the pickup of single jobs; a round samples Workron and the limit in turns."""
    rounds = _Rounds(dsn, samples)
    ours = Side("pickup of a job, p50", rounds.middle)
    bare = Side("commit, notify and claim, p50", rounds.bare)
    yield Figure("pickup-p50", "ms", ours, [Against(bare, Goal(2, is_most=True))])
    worst = Side("pickup of a job, p99", rounds.worst)
    own = Side("its own p50", rounds.last_middle)
    against = [Against(own, Goal(5, is_most=True)), *others]
    yield Figure("pickup-p99", "ms", worst, against)


class _Rounds:
    """The samples of the last round."""

    def __init__(self, dsn: str, samples: int) -> None:
        self._dsn = dsn
        self._samples = samples
        self._ours: list[float] = []
        self._bare: list[float] = []

    def middle(self) -> float:
        self._ours, self._bare = asyncio.run(_measured(self._dsn, self._samples))
        return self.last_middle()

    def last_middle(self) -> float:
        return statistics.median(self._ours)

    def bare(self) -> float:
        return statistics.median(self._bare)

    def worst(self) -> float:
        self.middle()
        return statistics.quantiles(self._ours, n=100, method="inclusive")[98]


async def _measured(dsn: str, samples: int) -> tuple[list[float], list[float]]:
    structlog.configure(processors=[_drop_event])
    async with (
        server.database(dsn) as url,
        server.database(dsn) as other,
        _ours(url) as ours,
        _limit(other) as limit,
    ):
        both: tuple[list[float], list[float]] = [], []
        for number in range(-_WARM_UP, samples):
            for taken, sample in zip(both, (ours, limit), strict=True):
                # A random pause, so that no poll always falls on the same moment of a sample.
                await asyncio.sleep(0.05 + random.random() / 20)  # noqa: S311 - not a secret
                seen = await sample()
                if number >= 0:
                    taken.append(seen)
        return both


@contextlib.asynccontextmanager
async def _ours(url: str) -> AsyncIterator[Sample]:
    # The submitter has a connection of its own, whose notifications cost the agent nothing.
    database = await open_pool(url, rng=plans.RNG, connections=1)
    submitter = PostgresStore(database, database, plans.RNG)
    store = await connect.connect_worker(url, clock=plans.Clock(), rng=plans.RNG)
    executor = _Null()
    dependencies = AgentDependencies(
        store, cast("RunnerExecutor", executor), Slots(2), plans.Clock(), plans.RNG
    )
    token = await submitter.ensure_pool("default", "default")
    agent = Agent(dependencies, Registration(token, "bench", uuid.uuid4(), 2))
    work = asyncio.create_task(agent.run())

    async def sample() -> float:
        executor.begun.clear()
        await submitter.submit([plans.many(1, {"command": "true"})], supersedes=True)
        await executor.begun.wait()
        return (executor.at - commits[-1]) * 1e3

    with _recorded_commits() as commits:
        yield sample
    agent.drain()
    await work
    await store.close()
    await submitter.close()


@contextlib.asynccontextmanager
async def _limit(url: str) -> AsyncIterator[Sample]:
    submitter, worker, listener = [await asyncpg.connect(url) for _ in range(3)]
    await submitter.execute("CREATE TABLE waiting (id bigserial PRIMARY KEY, spec text)")
    notified = asyncio.Event()
    await listener.add_listener("bare", lambda *_: notified.set())
    insert = await submitter.prepare("INSERT INTO waiting (spec) VALUES ('true')")
    claim = await worker.prepare(_CLAIM)

    async def sample() -> float:
        notified.clear()
        async with submitter.transaction():
            await insert.fetch()
            await submitter.execute("NOTIFY bare")
            began = time.perf_counter()
        await notified.wait()
        await claim.fetch()
        return (time.perf_counter() - began) * 1e3

    yield sample
    for one in (submitter, worker, listener):
        await one.close()

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
"""What has never run in a session takes longer: a system is idle here, and not new."""
_CLAIM = (
    "WITH one AS (SELECT id FROM waiting ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)"
    " DELETE FROM waiting USING one WHERE waiting.id = one.id RETURNING waiting.id"
)


def _say_nothing(*_: object) -> Never:
    raise structlog.DropEvent


@contextlib.contextmanager
def _noted_commits() -> Iterator[list[float]]:
    """Note when a transaction of this process is about to be committed: a submission is one."""
    commits: list[float] = []
    usual = Transaction.__aexit__

    async def noted(transaction: Transaction, *failed: Any) -> None:
        commits.append(time.perf_counter())
        await usual(transaction, *failed)

    with mock.patch.object(Transaction, "__aexit__", noted):
        yield commits


class _Null:
    """An executor that runs nothing, and notes when it was asked to."""

    is_ready = True

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.at = 0.0

    async def keep_ready(self, on_ready: object) -> None:
        """It is ready whatever happens."""

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
    """Pick up one job after the other; a round takes samples of ours and of the limit in turns."""
    rounds = _Rounds(dsn, samples)
    ours = Side("a job is picked up, p50", rounds.middle)
    bare = Side("commit, notify and claim, p50", rounds.bare)
    yield Figure("pickup-p50", "ms", ours, [Against(bare, Goal(2, is_most=True))])
    worst = Side("a job is picked up, p99", rounds.worst)
    own = Side("its own p50", rounds.last_middle)
    against = [Against(own, Goal(5, is_most=True)), *others]
    yield Figure("pickup-p99", "ms", worst, against)


class _Rounds:
    """What was seen in the last round that was begun."""

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
    structlog.configure(processors=[_say_nothing])
    async with (
        server.database(dsn) as url,
        server.database(dsn) as other,
        _ours(url) as ours,
        _limit(other) as limit,
    ):
        both: tuple[list[float], list[float]] = [], []
        for number in range(-_WARM_UP, samples):
            for taken, sample in zip(both, (ours, limit), strict=True):
                # So that nothing is still on its way, and no poll falls on the same beat each time.
                await asyncio.sleep(0.05 + random.random() / 20)  # noqa: S311 - no secret
                seen = await sample()
                if number >= 0:
                    taken.append(seen)
        return both


@contextlib.asynccontextmanager
async def _ours(url: str) -> AsyncIterator[Sample]:
    # Whoever submits is elsewhere, and what he hears costs the agent nothing.
    database = await open_pool(url, rng=plans.RNG, connections=1)
    person = PostgresStore(database, database, plans.RNG)
    store = await connect.connect_worker(url, clock=plans.Clock(), rng=plans.RNG)
    executor = _Null()
    dependencies = AgentDependencies(
        store, cast("RunnerExecutor", executor), Slots(2), plans.Clock(), plans.RNG
    )
    token = await person.ensure_pool("default", "default")
    agent = Agent(dependencies, Registration(token, "bench", uuid.uuid4(), 2))
    work = asyncio.create_task(agent.run())

    async def sample() -> float:
        executor.begun.clear()
        await person.submit([plans.many(1, {"command": "true"})], supersedes=True)
        await executor.begun.wait()
        return (executor.at - commits[-1]) * 1e3

    with _noted_commits() as commits:
        yield sample
    agent.drain()
    await work
    await store.close()
    await person.close()


@contextlib.asynccontextmanager
async def _limit(url: str) -> AsyncIterator[Sample]:
    person, worker, ear = [await asyncpg.connect(url) for _ in range(3)]
    await person.execute("CREATE TABLE waiting (id bigserial PRIMARY KEY, spec text)")
    rung = asyncio.Event()
    await ear.add_listener("bare", lambda *_: rung.set())
    insert = await person.prepare("INSERT INTO waiting (spec) VALUES ('true')")
    claim = await worker.prepare(_CLAIM)

    async def sample() -> float:
        rung.clear()
        async with person.transaction():
            await insert.fetch()
            await person.execute("NOTIFY bare")
            began = time.perf_counter()
        await rung.wait()
        await claim.fetch()
        return (time.perf_counter() - began) * 1e3

    yield sample
    for one in (person, worker, ear):
        await one.close()

"""The state that all steps of the random walk share: store, oracle and workers.

The maintainer propagates ends in steps of its own. Until then the store may be behind the oracle,
but only in what follows from other ends; steps whose effect depends on that propagate first.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any, TypeVar

import hypothesis

from tests.store.behaviour.databases import DatabaseUnderTest
from tests.store.behaviour.harness import Harness
from tests.store.machine import comparison
from tests.store.machine.job import OracleWorker, Run
from tests.store.machine.oracle import Oracle
from workron.core.ids import ClaimId
from workron.core.plan import Plan
from workron.store import api
from workron.store.types import AttemptReport, ClaimedJob, Registration, Session

T = TypeVar("T")


@dataclass(eq=False)
class WalkWorker(OracleWorker):
    """A worker's process: its session, its claims, and its latest calls, to be repeated."""

    registration: Registration = field(kw_only=True)
    session: Session = field(kw_only=True)
    claimed: list[ClaimedJob] = field(default_factory=list)
    last_claim: Sequence[ClaimId] = ()
    last_ends: Sequence[AttemptReport] = ()


class Walk:
    """One walk, which begins with an empty store."""

    def __init__(self, make_database: Callable[[], DatabaseUnderTest]) -> None:
        self._loop = asyncio.new_event_loop()
        self.chance = Random(0)
        self.workers: list[WalkWorker] = []
        self.oracle = Oracle(self.workers)
        self.former: list[WalkWorker] = []
        self.plans: list[Plan] = []
        self.unfinished: list[Run] = []
        self.is_propagated = True
        self.harness = self.run(_open(make_database()))
        self.advance(timedelta())

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(call)

    @property
    def store(self) -> "api.Store":
        return self.harness.store

    def close(self) -> None:
        self.run(self._close())
        self._loop.close()

    async def _close(self) -> None:
        try:
            await self.harness.check()
        finally:
            await self.harness.close()
            await self.harness.database.close()

    def pick(self, things: Sequence[T]) -> T:
        """Return the first or a random one, equally often."""
        return things[0] if self.chance.random() < 0.5 else self.chance.choice(things)

    def advance(self, by: timedelta) -> None:
        self.run(self.harness.advance(by))
        self.oracle.now = self.harness.database.clock.now()

    def propagate_all(self) -> None:
        self.run(self.harness.propagate_all())
        self.is_propagated = True

    def busy(self) -> list[WalkWorker]:
        """List all workers, those with signals and many claims first."""

        def weight(worker: WalkWorker) -> tuple[int, int, int]:
            held = self.oracle.held(worker)
            return sum(job.signal is not None for job in held), len(held), len(worker.claimed)

        return sorted(self.workers, key=weight, reverse=True)

    def reap(self, worker: WalkWorker, *, is_proven: bool, charge_losses: bool = True) -> set[int]:
        """Reap a worker in the oracle; return the jobs that failed by it."""
        failed = self.oracle.reap(worker, is_proven=is_proven, charge_losses=charge_losses)
        self.remove(worker)
        if is_proven:
            self.oracle.prove(self.namesakes(self.former, worker.pool, worker.name))
        return {job.id for job in failed}

    def remove(self, worker: WalkWorker) -> None:
        self.workers.remove(worker)
        self.former.append(worker)
        self.is_propagated = False

    def namesakes(self, workers: Sequence[WalkWorker], pool: str, name: str) -> list[WalkWorker]:
        return [one for one in workers if (one.pool, one.name) == (pool, name)]

    async def compare(self) -> None:
        """Compare all runs that may have changed with the oracle."""
        for run in list(self.unfinished):
            rows = list((await self.harness.rows(run.id)).values())
            await self.harness.check_lookups(rows)
            comparison.compare(self.oracle, rows, is_propagated=self.is_propagated)
            if all(row.finished_at is not None for row in rows):
                self.unfinished.remove(run)
        if self.is_propagated:
            assert (await self.store.audit(10)).missed == 0


async def _open(database: DatabaseUnderTest) -> Harness:
    await database.clear()
    harness = Harness(database, await database.open())
    harness.store = _LoggingStore(harness.store)
    return harness


class _LoggingStore:
    """A store that notes every call and answer, so that a failure shows what led to it."""

    def __init__(self, store: api.Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)

        @functools.wraps(verb)
        async def call(*args: Any, **options: Any) -> Any:
            try:
                answer = await verb(*args, **options)
            except Exception as error:
                hypothesis.note(_Call(name, args, options, error))
                raise
            if name not in _READERS:
                hypothesis.note(_Call(name, args, options, answer))
            return answer

        return call


@dataclass
class _Call:
    """A call; it is formatted only when a walk has failed."""

    verb: str
    given: Sequence[Any]
    options: Mapping[str, Any]
    answer: Any


_READERS = {
    *(
        "list_jobs",
        "list_runs",
        "list_run_summaries",
        "get_jobs",
        "filter_ended",
        "audit",
        "count_states",
        "list_heartbeats",
    ),
}

"""All operations at once, on several stores: every job ends once."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.plans import Task, task
from tests.store.behaviour.worker import MANY, Worker, mint, mint_boot, report_on
from tests.store.postgres.stage import Stage
from workron.core.ids import JobId
from workron.core.plan import Kind, Plan
from workron.core.verdict import Condition
from workron.store import api, types
from workron.store.postgres.store import PostgresStore, open_postgres
from workron.store.types import AttemptReport, ClaimedJob, Outcome

_LAYERS, _WIDTH, _ROOTS = 5, 8, 12
_ROUNDS = 3_000

_TOO_EARLY = """
    SELECT e.downstream FROM workron.edge e
    JOIN workron.attempt a ON a.job = e.downstream JOIN workron.done d ON d.job = e.upstream
    WHERE a.started_at < d.finished_at
"""
_TAKEN_TWICE = """
    SELECT a.job FROM workron.attempt a JOIN workron.attempt b ON b.job = a.job
    WHERE b.attempt > a.attempt AND b.started_at < a.finished_at
"""


def _layered(number: int, chance: random.Random) -> Plan:
    """Plan a workflow in which each task depends on some of the layer above, on any condition."""
    tasks: dict[str, Task] = {}
    above: list[str] = []
    for layer in range(_LAYERS):
        names = [f"t{layer}_{place}" for place in range(_WIDTH)]
        for name in names:
            needs = chance.sample(above, k=min(len(above), chance.randint(1, 4)))
            when = {need: chance.choice(list(Condition)[:3]) for need in needs}
            up = f"flow{chance.randrange(_ROOTS)}"
            # Only on earlier ones, so that no two wait for each other; some are submitted later.
            is_tied = layer == 2 and up < f"flow{number}" and chance.random() < 0.3
            outside = [plans.outside(up, Condition.FINISHED, kind=Kind.WORKFLOW)] * is_tied
            tasks[name] = task(when=when, outside=outside)
        above = names
    return plans.dag(f"flow{number}", tasks_array=task(count=5), **tasks)


@pytest.fixture
async def stores(fresh_database: str) -> AsyncIterator[Sequence[PostgresStore]]:
    opened = [await open_postgres(fresh_database, rng=random.Random()) for _ in range(3)]
    yield opened
    for store in opened:
        await store.close()


async def _work(worker: Worker, chance: random.Random, is_over: asyncio.Event) -> None:
    held: list[ClaimedJob] = []
    while not is_over.is_set():
        ends = [_end(one, chance) for one in held]
        done = await worker.store.complete(worker.session.key, ends, mint(chance.randint(1, 5)))
        held = list(done.claimed)
        if held and chance.random() < 0.1:
            await worker.release(*held)
            held = []


def _end(claimed: ClaimedJob, chance: random.Random) -> AttemptReport:
    fates = [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.RETRY]
    return report_on(claimed, *chance.choices(fates, weights=[7, 2, 1]))


async def _maintain(store: api.Store, is_over: asyncio.Event) -> None:
    while not is_over.is_set():
        await store.propagate(20)
        await store.promote(20)


async def _submit_and_change(store: api.Store, number: int, chance: random.Random) -> JobId:
    """Submit a run, and maybe change it."""
    (submitted,) = await store.submit([_layered(number, chance)])
    fate = chance.random()
    if fate < 0.2:
        await store.cancel(submitted.run)
    elif fate < 0.5:
        await store.suspend(submitted.run)
        await store.resume(submitted.run)
    return submitted.run


async def _until_all_have_ended(stage: Stage) -> None:
    left = None
    for _ in range(_ROUNDS):
        left = await stage.sql.fetchval(
            "SELECT count(*) FROM workron.job j WHERE NOT EXISTS "
            "(SELECT 1 FROM workron.done d WHERE d.job = j.id)"
        )
        if not left:
            return
    raise AssertionError(f"{left} jobs have not ended")


async def _workers(stage: Stage, stores: Sequence[PostgresStore]) -> list[Worker]:
    return [
        Worker(store, await store.register(_registration(stage, f"worker{number}")))
        for number, store in enumerate([*stores, *stores])
    ]


def _registration(stage: Stage, name: str) -> types.Registration:
    return types.Registration(stage.token, name, mint_boot(), slots=MANY)


@pytest.mark.parametrize("seed", range(3))
async def test_every_job_ends_once_when_all_operations_run_at_once(
    stage: Stage, stores: Sequence[PostgresStore], seed: int
) -> None:
    chance, is_over = random.Random(seed), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for worker in await _workers(stage, stores):
            group.create_task(_work(worker, chance, is_over))
        for store in stores:
            group.create_task(_maintain(store, is_over))
        order = chance.sample(range(_ROOTS), k=_ROOTS)
        for first in range(0, _ROOTS, 3):
            numbers = zip(stores, order[first : first + 3], strict=True)
            await asyncio.gather(*(_submit_and_change(store, n, chance) for store, n in numbers))
        await _until_all_have_ended(stage)
        is_over.set()
    assert await stage.count_stranded() == 0
    assert await stage.sql.fetch(_TOO_EARLY) == []
    assert await stage.sql.fetch(_TAKEN_TWICE) == []
    assert await stage.sql.fetchval("SELECT count(*) FROM workron.external_dependency") == 0

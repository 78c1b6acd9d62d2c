"""The commands that show workers: `workers` lists them, and `top` sums them up by pool."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from workron.cli import formatting, options, stores, system_clock
from workron.cli.options import OutputFormat
from workron.cli.table import Table
from workron.cli.watch import Watch
from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from workron.store.api import OperatorStore
    from workron.store.types import WorkerRow


_WORKER_TITLES: Final = ("POOL", "NAME", "SLOTS", "RUNNING", "STATE")
_POOL_TITLES: Final = ("POOL", "WORKERS", "SLOTS", "RUNNING", "FREE", "QUEUED", "OLDEST")
_COLORS: Final = {"draining": "yellow"}
_UNSTEADY: Final = frozenset({"OLDEST"})

PoolNamespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of the pools; default: all."),
]


@dataclass(slots=True)
class PoolLoad:
    """Capacity and load of a pool."""

    workers: int = 0
    slots: int = 0
    running: int = 0
    free: int = 0
    """Slots without a job, of workers that take jobs."""
    queued: int = 0
    oldest: datetime | None = None
    """Submission time of the oldest queued job."""

    def add(self, worker: WorkerRow) -> None:
        """Count a worker."""
        self.workers += 1
        self.slots += worker.slots
        self.running += worker.claims
        self.free += 0 if worker.is_draining else max(0, worker.slots - worker.claims)


def workers(
    store: options.Store,
    namespace: PoolNamespace = None,
    output: options.Output = OutputFormat.TABLE,
) -> None:
    """List the workers of a store, with the jobs that they run.

    A lost worker is listed until a maintainer has noticed it. A draining one takes no more jobs.
    """
    asyncio.run(_workers(store, namespace, is_json=output is OutputFormat.JSON))


async def _workers(url: str, namespace: str | None, *, is_json: bool) -> None:
    async with stores.opened(url) as store:
        found = await _list(store, namespace)
    if is_json:
        typer.echo(formatting.as_document({"items": [_worker_fields(one) for one in found]}))
    elif found:
        Table(_WORKER_TITLES, _COLORS).print([_worker_cells(one) for one in found])
    else:
        where = "" if namespace is None else f" in namespace {namespace!r}"
        typer.echo(f"no workers{where}; `workron worker` starts one", err=True)


async def _list(store: OperatorStore, namespace: str | None) -> Sequence[WorkerRow]:
    found = [one for one in await store.list_workers() if namespace in {None, one.namespace}]
    return sorted(found, key=lambda one: (one.namespace, one.pool, one.worker))


def _worker_fields(one: WorkerRow) -> dict[str, Any]:
    return {
        "namespace": one.namespace,
        "pool": one.pool,
        "name": one.name,
        "slots": one.slots,
        "running": one.claims,
        "isDraining": one.is_draining,
    }


def _worker_cells(one: WorkerRow) -> Sequence[str]:
    state = "draining" if one.is_draining else "ready"
    return (f"{one.namespace}/{one.pool}", one.name, str(one.slots), str(one.claims), state)


def top(
    store: options.Store,
    namespace: PoolNamespace = None,
    output: options.Output = OutputFormat.TABLE,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print a new line for each change.")
    ] = False,
) -> None:
    """Show how busy each pool is: its workers, and the jobs that wait for them.

    OLDEST is the time since the submission of the oldest queued job.
    """
    if watch and output is OutputFormat.JSON:
        raise errors.InputError("--watch prints a table; leave out -o json")
    if watch:
        asyncio.run(_watch(store, namespace))
    else:
        asyncio.run(_top(store, namespace, is_json=output is OutputFormat.JSON))


async def _top(url: str, namespace: str | None, *, is_json: bool) -> None:
    async with stores.opened(url) as store:
        pools = await _loads(store, namespace)
    if is_json:
        items = [_pool_fields(*pool, load) for pool, load in pools.items()]
        typer.echo(formatting.as_document({"items": items}))
    elif pools:
        Table(_POOL_TITLES, {}).print([*_pool_lines(pools).values()])
    else:
        typer.echo("no workers and no queued jobs", err=True)


async def _watch(url: str, namespace: str | None) -> None:
    outage = stores.outage()
    async with stores.opened_with_retry(url, outage) as store:

        async def read() -> Mapping[Any, Sequence[str]]:
            return _pool_lines(await _loads(store, namespace))

        async def never() -> bool:
            return False

        await Watch(_POOL_TITLES, {}, _UNSTEADY).run(store, outage, read, never)


async def _loads(store: OperatorStore, namespace: str | None) -> Mapping[tuple[str, str], PoolLoad]:
    loads: defaultdict[tuple[str, str], PoolLoad] = defaultdict(PoolLoad)
    for worker in await _list(store, namespace):
        loads[worker.namespace, worker.pool].add(worker)
    for pool, demand in (await store.pool_demand()).items():
        if namespace in {None, pool[0]}:
            loads[pool].queued, loads[pool].oldest = demand
    return dict(sorted(loads.items()))


def _pool_fields(namespace: str, pool: str, load: PoolLoad) -> dict[str, Any]:
    counts = ("workers", "slots", "running", "free", "queued")
    return {"namespace": namespace, "pool": pool, **{one: getattr(load, one) for one in counts}}


def _pool_lines(
    pools: Mapping[tuple[str, str], PoolLoad],
) -> Mapping[tuple[str, str], Sequence[str]]:
    now = system_clock.CLOCK.now()
    return {
        pool: (
            "/".join(pool),
            *(
                f"{one:,}"
                for one in (load.workers, load.slots, load.running, load.free, load.queued)
            ),
            "" if load.oldest is None else formatting.age(load.oldest, now),
        )
        for pool, load in pools.items()
    }

"""The WorkerPool controller: lists all pools every two seconds and reconciles each that is due.

It runs on the leader; two at once only do harmless work twice. A cluster has tens of pools, not
thousands, so a list is cheaper than the state that a watch needs. A round reads the store once for
all pools. Then each pool is reconciled in a task of its own, so that a slow one delays no other.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pydantic
import structlog

from workron.core import errors
from workron.core.model.workerpool import WorkerPool
from workron_controller.kube import client, resources
from workron_controller.kube import errors as api_errors
from workron_controller.kube.conditions import StatusReason
from workron_controller.workerpools import configured_pools, manifests, status
from workron_controller.workerpools.configured_pools import PoolCreator
from workron_controller.workerpools.credentials import CredentialRevoker
from workron_controller.workerpools.observed import PoolInput
from workron_controller.workerpools.reconciler import PoolReconciler

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Collection,
        Hashable,
        Iterable,
        Mapping,
        Sequence,
    )

    from workron.core.clock import Sleep
    from workron.core.model.workerpool import WorkerPoolSpec
    from workron.store.types import PoolDemand, WorkerRow
    from workron_controller.workerpools.config import PoolDependencies
    from workron_controller.workerpools.manifests import PoolName


_INTERVAL_SECONDS: Final = 2.0
_REST_FACTOR: Final = 4
"""A round over a long queue takes longer, and rests longer to spare the database."""
QUIET_INTERVAL: Final = 15.0
"""How often a pool is reconciled that needs no worker or cannot have one."""
_TASK_TIMEOUT: Final = 60.0

_log = structlog.get_logger(__name__)


class WorkerPoolController:
    """Reconciles all pools."""

    def __init__(
        self,
        deps: PoolDependencies,
        quiet_interval: float = QUIET_INTERVAL,
        task_timeout: float = _TASK_TIMEOUT,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._deps = deps
        self._quiet_interval = quiet_interval
        self._task_timeout = task_timeout
        self._sleep = sleep
        self._creator = PoolCreator(deps)
        self._revoker = CredentialRevoker(deps, self._invalidate_credentials)
        self._reconcilers: dict[PoolName, PoolReconciler] = {}
        self._with_workers: frozenset[PoolName] = frozenset()
        self._forbidden: set[str] = set()
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._has_observed = False
        self.demand: Mapping[PoolName, PoolDemand] = {}
        """The queues of all pools; empty on a replica that does not lead."""

    async def run(self) -> None:
        """Reconcile until it is cancelled."""
        is_failing = False
        try:
            while True:
                started_at = self._deps.clock.monotonic()
                try:
                    await self.reconcile_all()
                    is_failing = False
                except errors.WorkronError as error:
                    if not is_failing:
                        _log.warning("pools not listed", error=str(error))
                    is_failing = True
                took = self._deps.clock.monotonic() - started_at
                await self._sleep(max(_INTERVAL_SECONDS, _REST_FACTOR * took))
        finally:
            self.stop()

    def stop(self) -> None:
        """Cancel all tasks and forget all pools: the state is outdated when it leads again."""
        self.demand, self._reconcilers, self._has_observed = {}, {}, False
        for task in self._tasks.values():
            task.cancel()

    async def reconcile_all(self) -> None:
        """List all pools once, and start the reconciliation of each that is due."""
        granted = await self._revoker.list_granted()
        listed = await self._list_pools()
        workers: Sequence[WorkerRow] = ()
        demand: Mapping[PoolName, PoolDemand] = {}
        problem = None
        try:
            workers = await self._deps.store.list_workers()
            demand = await self._deps.store.pool_demand()
        except errors.StoreError as error:
            problem = status.reason_for_error(error, "", "")
        self._update_reconcilers(_pool_input(raw, workers, demand, problem) for raw in listed)
        if problem is None:
            self._observe_store(workers, demand)
            self._create_and_revoke(granted, {manifests.name_of(raw) for raw in listed})
        for one in self._reconcilers.values():
            if one.is_due(self._quiet_interval):
                self._start(one.pool, one.reconcile)

    def blocking_reason(self, namespace: str, pool: str) -> StatusReason | None:
        """Return why no worker can claim the jobs of a pool; None if one can or may soon."""
        name = namespace, pool
        is_unknown = not self._has_observed or namespace in self._forbidden
        if is_unknown or name in self._with_workers:
            return None
        if (reconciler := self._reconcilers.get(name)) is not None:
            return status.reason_for_jobs(reconciler.problem, pool)
        return self._creator.missing_reason(namespace, pool)

    async def wait_idle(self) -> None:
        """Wait until no task runs."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _create_and_revoke(self, granted: Iterable[PoolName], listed: Collection[PoolName]) -> None:
        """Create pools that jobs need, and revoke those that were granted before the list began."""
        existing, needed = set(self._reconcilers), self.demand.keys() - self._with_workers
        self._start("create", partial(self._creator.create_missing, existing, needed))
        missing = {
            (namespace, pool)
            for namespace, pool in granted
            if self._deps.covers(namespace)
            and namespace not in self._forbidden
            and (namespace, pool) not in listed
        }
        if missing:
            self._start("revoke", partial(self._revoker.revoke_missing, missing))

    def _invalidate_credentials(self, name: PoolName) -> None:
        if (reconciler := self._reconcilers.get(name)) is not None:
            reconciler.credentials.invalidate()

    async def _list_pools(self) -> Sequence[Mapping[str, Any]]:
        namespaces: Sequence[str | None] = sorted(self._deps.namespaces) or [None]
        found, forbidden = [], set()
        for namespace in namespaces:
            path = resources.WORKERPOOLS.at(namespace)
            try:
                found += await client.list_all(self._deps.api, self._deps.retrying, path)
            except api_errors.ForbiddenError as error:
                if namespace is None:
                    raise
                forbidden.add(namespace)
                if namespace not in self._forbidden:
                    _log.warning("pools not listed", namespace=namespace, error=str(error))
        self._forbidden = forbidden
        return found

    def _update_reconcilers(self, pools: Iterable[PoolInput]) -> None:
        """Keep the reconcilers of these pools, and add and remove others."""
        before, self._reconcilers = self._reconcilers, {}
        for one in pools:
            name = manifests.name_of(one.raw)
            reconciler = before.get(name)
            if "deletionTimestamp" in one.raw["metadata"]:
                # A finalizer may keep the pool, but its user wants its workers to end.
                continue
            if reconciler is None or reconciler.pool != one.names:
                reconciler = PoolReconciler(one, self._deps)
            reconciler.given = one
            self._reconcilers[name] = reconciler

    def _observe_store(
        self, workers: Iterable[WorkerRow], demand: Mapping[PoolName, PoolDemand]
    ) -> None:
        """Take over workers and queues, and give the budget what each pool wants."""
        names = [(worker.namespace, worker.pool) for worker in workers]
        self.demand, self._with_workers = demand, frozenset(names)
        reconcilers = self._reconcilers.values()
        wanted = {one.pool: one.desired_replicas() for one in reconcilers}
        present = {one.pool: len(one.given.workers) for one in reconcilers}
        others = sum(name not in self._reconcilers for name in names)
        self._deps.budget.set_demand(wanted, present, others)
        self._has_observed = True

    def _start(self, key: Hashable, work: Callable[[], Awaitable[None]]) -> None:
        """Start a task, unless the one of the last round still runs."""
        if key in self._tasks:
            return
        task = asyncio.create_task(self._run_safely(key, work))
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key))

    async def _run_safely(self, key: Hashable, work: Callable[[], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(self._task_timeout):
                await work()
        except Exception:  # noqa: BLE001 - one pool must not stop the others
            _log.exception("pool not reconciled", pool=str(key))


def _pool_input(
    raw: Mapping[str, Any],
    workers: Iterable[WorkerRow],
    demand: Mapping[PoolName, PoolDemand],
    problem: StatusReason | None,
) -> PoolInput:
    name = manifests.name_of(raw)
    queued = demand[name].ready if name in demand else 0
    own = [worker for worker in workers if (worker.namespace, worker.pool) == name]
    return PoolInput(raw, _parse_spec(raw), queued, own, problem)


def _parse_spec(raw: Mapping[str, Any]) -> WorkerPoolSpec | StatusReason:
    try:
        return WorkerPool.parse(raw).spec
    except pydantic.ValidationError as error:
        return StatusReason(status.INVALID_SPEC, configured_pools.describe_errors(error))
    except Exception as error:  # noqa: BLE001 - one pool must not stop the others
        return StatusReason(status.INVALID_SPEC, f"cannot read the object: {error!r}")

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
from workron_controller.workerpools import conditions, configured_pools, manifests
from workron_controller.workerpools.configured_pools import PoolCreator
from workron_controller.workerpools.credentials import CredentialRevoker
from workron_controller.workerpools.observed import PoolInput
from workron_controller.workerpools.reconciler import PoolReconciler

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence

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
    ) -> None:
        self._deps = deps
        self._quiet_interval = quiet_interval
        self._task_timeout = task_timeout
        self._creator = PoolCreator(deps)
        self._revoker = CredentialRevoker(deps, self._invalidate_credentials)
        self._reconcilers: dict[PoolName, PoolReconciler] = {}
        self._with_workers: frozenset[PoolName] = frozenset()
        self._forbidden: set[str] = set()
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._has_observed = False
        self._is_failing = False
        self.demand: Mapping[PoolName, PoolDemand] = {}
        """The queues of all pools; empty on a replica that does not lead."""

    async def run(self) -> None:
        """Reconcile until it is cancelled."""
        try:
            while True:
                started_at = self._deps.clock.monotonic()
                await self._round()
                took = self._deps.clock.monotonic() - started_at
                await asyncio.sleep(max(_INTERVAL_SECONDS, _REST_FACTOR * took))
        finally:
            self.stop()

    def stop(self) -> None:
        """Cancel all tasks and forget all pools: the state is outdated when it leads again."""
        self.demand, self._reconcilers, self._has_observed = {}, {}, False
        for task in self._tasks.values():
            task.cancel()

    async def _round(self) -> None:
        try:
            await self.reconcile_all()
        except errors.WorkronError as error:
            if not self._is_failing:
                _log.warning("pools not listed", error=str(error))
            self._is_failing = True
        else:
            self._is_failing = False

    async def reconcile_all(self) -> None:
        """List all pools once, and start the reconciliation of each that is due."""
        granted = await self._revoker.list_granted()
        listed = await self._list_pools()
        # A finalizer may keep a deleted pool, but its user wants its workers to end.
        raws = [raw for raw in listed if "deletionTimestamp" not in raw["metadata"]]
        try:
            workers = await self._deps.store.list_workers()
            demand = await self._deps.store.pool_demand()
        except errors.StoreError as error:
            problem = conditions.reason_for_error(error, "", "")
            pools = [PoolInput(raw, _parse_spec(raw), problem=problem) for raw in raws]
            self._update_reconcilers(pools)
        else:
            pools = [_pool_input(raw, workers, demand) for raw in raws]
            self._update_reconcilers(pools)
            self._observe_store(pools, workers, demand)
            needed = demand.keys() - self._with_workers
            existing = set(self._reconcilers)
            self._start("create", partial(self._creator.create_missing, existing, needed))
            # The store knew these pools before the list began, which covers them and lacks them.
            known = {name for name in granted if self._is_listed(name)}
            missing = known - {manifests.name_of(raw) for raw in listed}
            if missing:
                self._start("revoke", partial(self._revoker.revoke_missing, missing))
        for one in pools:
            reconciler = self._reconcilers[manifests.name_of(one.raw)]
            if reconciler.is_due(one, self._quiet_interval):
                self._start(reconciler.pool, partial(reconciler.reconcile, one))

    def blocking_reason(self, namespace: str, pool: str) -> StatusReason | None:
        """Return why no worker can claim the jobs of a pool; None if one can or may soon."""
        name = namespace, pool
        is_unknown = not self._has_observed or namespace in self._forbidden
        if is_unknown or name in self._with_workers:
            return None
        if (reconciler := self._reconcilers.get(name)) is not None:
            return conditions.reason_for_jobs(reconciler.problem, pool)
        return self._creator.missing_reason(namespace, pool)

    async def wait_idle(self) -> None:
        """Wait until no task runs."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _is_listed(self, name: PoolName) -> bool:
        return self._deps.covers(name[0]) and name[0] not in self._forbidden

    def _invalidate_credentials(self, name: PoolName) -> None:
        if (reconciler := self._reconcilers.get(name)) is not None:
            reconciler.credentials.invalidate()

    async def _list_pools(self) -> Sequence[Mapping[str, Any]]:
        if not self._deps.namespaces:
            return await self._list(None)
        found, forbidden = [], set()
        for namespace in sorted(self._deps.namespaces):
            try:
                found += await self._list(namespace)
            except api_errors.ForbiddenError as error:
                forbidden.add(namespace)
                if namespace not in self._forbidden:
                    _log.warning("pools not listed", namespace=namespace, error=str(error))
        self._forbidden = forbidden
        return found

    async def _list(self, namespace: str | None) -> list[Mapping[str, Any]]:
        path = resources.WORKERPOOLS.at(namespace)
        return await client.list_all(self._deps.api, self._deps.retrying, path)

    def _update_reconcilers(self, pools: Iterable[PoolInput]) -> None:
        """Keep the reconcilers of these pools, and add and remove others."""
        before, self._reconcilers = self._reconcilers, {}
        for one in pools:
            name = manifests.name_of(one.raw)
            kept = before.get(name)
            if kept is None or kept.pool != one.names:
                kept = PoolReconciler(one.names, self._deps)
            self._reconcilers[name] = kept

    def _observe_store(
        self,
        pools: Iterable[PoolInput],
        workers: Iterable[WorkerRow],
        demand: Mapping[PoolName, PoolDemand],
    ) -> None:
        """Take over workers and queues, and give the budget what each pool wants."""
        names = [(worker.namespace, worker.pool) for worker in workers]
        self.demand, self._with_workers = demand, frozenset(names)
        wanted, present = {}, {}
        for one in pools:
            reconciler = self._reconcilers[manifests.name_of(one.raw)]
            wanted[reconciler.pool] = reconciler.desired_replicas(one)
            present[reconciler.pool] = len(one.workers)
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
    raw: Mapping[str, Any], workers: Iterable[WorkerRow], demand: Mapping[PoolName, PoolDemand]
) -> PoolInput:
    name = manifests.name_of(raw)
    queued = demand[name].ready if name in demand else 0
    own = [worker for worker in workers if (worker.namespace, worker.pool) == name]
    return PoolInput(raw, _parse_spec(raw), queued, own)


def _parse_spec(raw: Mapping[str, Any]) -> WorkerPoolSpec | StatusReason:
    try:
        return WorkerPool.parse(raw).spec
    except pydantic.ValidationError as error:
        return StatusReason(conditions.INVALID_SPEC, configured_pools.describe_errors(error))
    except Exception as error:  # noqa: BLE001 - one pool must not stop the others
        return StatusReason(conditions.INVALID_SPEC, f"cannot read the object: {error!r}")

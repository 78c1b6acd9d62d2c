"""Keeps all WorkerPools: looks at all of them together, and has each tended by itself.

Runs on the one replica that leads; two at once only do twice what is harmless. Pools are tens, not
thousands, so they are listed every few seconds, and nothing has to be remembered of what a watch
has told.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from workron.core import errors
from workron_controller.jobs.cache import StatusReason
from workron_controller.kube import errors as api_errors
from workron_controller.kube import resources
from workron_controller.workerpools import autoscaler, conditions, snapshot
from workron_controller.workerpools.cluster_state import list_all
from workron_controller.workerpools.configured_pools import PoolCreator
from workron_controller.workerpools.credentials import CredentialRevoker
from workron_controller.workerpools.reconciler import PoolReconciler
from workron_controller.workerpools.snapshot import PoolView

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

    from workron.store.types import PoolDemand, WorkerRow
    from workron_controller.workerpools.manifests import PoolNames
    from workron_controller.workerpools.reconciler import ReconcilerDependencies


if TYPE_CHECKING:
    Name = tuple[str, str]
    Work = Callable[[], Awaitable[None]]

_REST_SECONDS: Final = 2.0
_RESTS: Final = 4
"""Looks at a long queue take their time, and leave the database more."""
_IDLE_SECONDS: Final = 15.0
"""A pool that needs no worker, or can have none, is looked at no more often."""
_LONGEST_SECONDS: Final = 60.0
_FOUNDING: Final = "founding"
_DISMISSAL: Final = "dismissal"

_log = structlog.get_logger(__name__)


class WorkerPoolController:
    """Keeps them for as long as it runs."""

    def __init__(self, around: ReconcilerDependencies) -> None:
        self._around = around
        self._founding = PoolCreator(around)
        self._dismissal = CredentialRevoker(around, self._doubt)
        self._tended: dict[PoolNames, PoolReconciler] = {}
        self._by_name: dict[Name, PoolReconciler] = {}
        self._staffed: frozenset[Name] = frozenset()
        self._closed: set[str] = set()
        self._rests: dict[PoolNames, tuple[int, float]] = {}
        self._hands: dict[Hashable, asyncio.Task[None]] = {}
        self._has_looked = False
        self._is_away = False
        self.demand: Mapping[Name, PoolDemand] = {}
        """What waits in all pools, as far as this replica looks after them."""

    async def run(self) -> None:
        """Go on for ever."""
        try:
            while True:
                began = self._around.clock.monotonic()
                await self._round()
                took = self._around.clock.monotonic() - began
                await asyncio.sleep(max(_REST_SECONDS, _RESTS * took))
        finally:
            self.stop()

    def stop(self) -> None:
        """Let go of everything: who leads again later knows nothing of the time between."""
        self.demand, self._tended, self._has_looked = {}, {}, False
        for task in self._hands.values():
            task.cancel()

    async def _round(self) -> None:
        try:
            await self.look()
        except errors.WorkronError as trouble:
            if not self._is_away:
                _log.warning("pools cannot be looked at", error=str(trouble))
            self._is_away = True
        else:
            self._is_away = False

    async def look(self) -> None:
        """Look at all pools once, and set off tending those that are not in hand."""
        known = await self._known()
        listed = await self._listed()
        # Who deletes one wants it to end now.
        raws = [one for one in listed if "deletionTimestamp" not in one["metadata"]]
        try:
            staff, demand = (
                await self._around.store.list_workers(),
                await self._around.store.pool_demand(),
            )
        except errors.StoreError as away:
            trouble = conditions.condition_of_error(away, "", "")
            pools = [PoolView(raw, snapshot.parse_spec(raw), 0, (), trouble) for raw in raws]
            self._know(pools)
        else:
            self.demand = demand
            self._staffed = frozenset((worker.namespace, worker.pool) for worker in staff)
            pools = [_view(raw, staff, demand) for raw in raws]
            self._know(pools)
            self._weigh(pools, staff)
            self._has_looked = True
            there, wanted = set(self._by_name), demand.keys() - self._staffed
            self._set_off(_FOUNDING, partial(self._founding.found, there, wanted))
            missing = self._missing(known, listed)
            if missing:
                self._set_off(_DISMISSAL, partial(self._dismissal.dismiss, missing))
        for one in pools:
            if self._is_due(one):
                self._set_off(one.pool, partial(self._tended[one.pool].tend, one))

    def hint(self, namespace: str, pool: str) -> StatusReason | None:
        """Say what keeps jobs of this pool from being claimed, if anything does."""
        name = namespace, pool
        if not self._has_looked or name in self._staffed or namespace in self._closed:
            return None
        if (tending := self._by_name.get(name)) is not None:
            return conditions.job_hint(tending.trouble, pool)
        return self._founding.hint(namespace, pool)

    async def settled(self) -> None:
        """Return when nothing is in hand any more."""
        while self._hands:
            await asyncio.wait(self._hands.values())

    async def _known(self) -> Collection[Name]:
        try:
            return await self._dismissal.candidates()
        except errors.StoreError:
            # What keeps the store from answering is told when it is asked for more.
            return ()

    def _missing(
        self, known: Iterable[Name], listed: Iterable[Mapping[str, Any]]
    ) -> Collection[Name]:
        """Give those that the store knew of before the list began, and that are not on it."""
        there = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in listed}
        return {name for name in {*known} - there if self._covers(name[0])}

    def _covers(self, namespace: str) -> bool:
        """Tell whether pools of this namespace were on the list, if there are any."""
        return not self._around.namespaces or (
            namespace in self._around.namespaces and namespace not in self._closed
        )

    def _doubt(self, name: Name) -> None:
        if (tending := self._by_name.get(name)) is not None:
            tending.doubt()

    async def _listed(self) -> Sequence[Mapping[str, Any]]:
        """List all that can be seen."""
        found = [] if self._around.namespaces else await self._list(None)
        closed = set()
        for namespace in sorted(self._around.namespaces):
            try:
                found += await self._list(namespace)
            except api_errors.ForbiddenError as error:
                # The others are none the worse for it.
                closed.add(namespace)
                if namespace not in self._closed:
                    _log.warning("pools cannot be listed", namespace=namespace, error=str(error))
        self._closed = closed
        return found

    async def _list(self, namespace: str | None) -> list[Mapping[str, Any]]:
        place = resources.WORKERPOOLS.at(namespace)
        return await list_all(self._around.api, self._around.retrying, place)

    def _know(self, pools: Iterable[PoolView]) -> None:
        """Know of these pools, and of no others."""
        before, self._tended = self._tended, {}
        for one in pools:
            self._tended[one.pool] = before.get(one.pool) or PoolReconciler(one.pool, self._around)
        self._by_name = {(pool.namespace, pool.name): one for pool, one in self._tended.items()}
        self._rests = {pool: at for pool, at in self._rests.items() if pool in self._tended}

    def _weigh(self, pools: Iterable[PoolView], staff: Iterable[WorkerRow]) -> None:
        """Take in how many workers each wants beside all others."""
        wanted = {one.pool: self._wanted(one) for one in pools}
        others = sum((worker.namespace, worker.pool) not in self._by_name for worker in staff)
        self._around.budget.keep(wanted, others)
        for one in pools:
            self._around.budget.begin(one.pool, len(one.staff))

    def _wanted(self, one: PoolView) -> int:
        """Say how many it wants; of one that is wrong nobody knows, so none are taken away."""
        if isinstance(one.spec, StatusReason):
            return len(one.staff)
        needed = autoscaler.desired_replicas(one.spec, one.queued, one.running)
        return self._tended[one.pool].wants(one.spec, needed, len(one.staff))

    def _is_due(self, one: PoolView) -> bool:
        """Tell whether it needs something; where nothing can be done a look at times is enough."""
        pool, now = one.pool, self._around.clock.monotonic()
        is_idle = not one.staff and not self._around.budget.wanted(pool)
        tending = self._tended[pool]
        is_quiet = is_idle or tending.is_refused or conditions.blocks_scaling(tending.trouble)
        generation, until = self._rests.get(pool, (None, 0.0))
        if is_quiet and generation == one.generation and now < until:
            return False
        self._rests[pool] = one.generation, now + _IDLE_SECONDS
        return True

    def _set_off(self, key: Hashable, work: Work) -> None:
        """Have it done beside all else, unless it still is from the last time."""
        if key in self._hands:
            return
        task = asyncio.create_task(_safely(key, work))
        self._hands[key] = task
        task.add_done_callback(lambda _: self._hands.pop(key))


async def _safely(key: Hashable, work: Work) -> None:
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            await work()
    except Exception:  # noqa: BLE001 - nothing in one pool may stop the others
        _log.exception("pool cannot be tended", pool=str(key))


def _view(
    raw: Mapping[str, Any], staff: Iterable[WorkerRow], demand: Mapping[Name, PoolDemand]
) -> PoolView:
    name = raw["metadata"]["namespace"], raw["metadata"]["name"]
    queued = demand[name].ready if name in demand else 0
    own = [worker for worker in staff if (worker.namespace, worker.pool) == name]
    return PoolView(raw, snapshot.parse_spec(raw), queued, own)

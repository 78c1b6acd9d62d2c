"""All parts of the operator, put together and kept going.

Every replica takes in; only the leader tells, since two who write the same are twice the writes and
nothing else. Whatever ends a part ends the operator, and the cluster begins it anew.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workron_controller.jobs.cache import ObjectCache
from workron_controller.jobs.informer import Informer, ObjectHandler
from workron_controller.jobs.resync import Resync
from workron_controller.jobs.status_sync import StatusSync
from workron_controller.jobs.status_writer import StatusQueue, StatusWriter
from workron_controller.jobs.submitter import Submitter
from workron_controller.jobs.ttl import TtlController
from workron_controller.jobs.workqueue import Workqueue
from workron_controller.kube.client import RetryingCalls
from workron_controller.kube.custom_objects import CustomObjects
from workron_controller.kube.events import EventRecorder
from workron_controller.workerpools import reconciler
from workron_controller.workerpools.autoscaler import ConnectionBudget
from workron_controller.workerpools.controller import WorkerPoolController

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from workron.core.clock import Clock, Rng
    from workron.scheduling.maintainer import Maintainer
    from workron.store.api import Store
    from workron_controller.kube.auth import ApiAccess
    from workron_controller.kube.client import ApiClient, ApiWrite
    from workron_controller.kube.leader_election import LeaderElection
    from workron_controller.workerpools.config import PoolSettings


_LOOK_SECONDS: Final = 5.0
"""Pools are looked at again soon, so nobody insists on one look."""


@dataclass(frozen=True, slots=True)
class ManagerScope:
    """What it looks after, and how fast it may write."""

    namespaces: Collection[str] = ()
    """None: all."""
    rate: float = 200.0
    """Statuses a second."""
    connections: int | None = None
    """How many of the database's workers may have; None: three of four."""


@dataclass(frozen=True, slots=True)
class ManagerDependencies:
    """What it works with."""

    pools: PoolSettings
    store: Store
    server: ApiClient
    access: ApiAccess
    election: LeaderElection
    maintainer: Maintainer
    clock: Clock
    rng: Rng


class Manager:
    """One replica."""

    def __init__(self, around: ManagerDependencies, scope: ManagerScope) -> None:
        self._around = around
        self.began_at = around.clock.monotonic()
        self.objects = ObjectCache()
        store, clock = around.store, around.clock
        self.inbox = Workqueue(clock)
        ear = ObjectHandler(self.objects, self.inbox)
        self.misses = ear.misses
        retrying = RetryingCalls(clock, around.rng)
        cluster = CustomObjects(around.server, retrying, scope.namespaces)
        self.doorbell = Informer(ear, around.access, scope.namespaces, clock, around.rng)
        self.comparison = Resync(cluster, store, ear, clock, around.rng)
        self.carrier = Submitter(store, self.inbox, self.objects)
        self.outbox = StatusQueue(scope.rate, burst=scope.rate)
        self.herald = EventRecorder(around.server, retrying, clock)
        self.writer = StatusWriter(
            cluster.tell, self.outbox, self.objects, clock, self.herald.leave
        )
        self.keeper = self._keeper(scope)
        self.look = StatusSync(store, self.objects, self.writer.put, self.keeper.hint, clock)
        self.farewell = TtlController(store, cluster.delete, self.objects, clock)

    def _keeper(self, scope: ManagerScope) -> WorkerPoolController:
        around = self._around
        retrying = RetryingCalls(around.clock, around.rng, seconds=_LOOK_SECONDS)
        return WorkerPoolController(
            reconciler.ReconcilerDependencies(
                api=around.server,
                retrying=retrying,
                store=around.store,
                budget=ConnectionBudget(scope.connections),
                settings=around.pools,
                namespaces=scope.namespaces,
                clock=around.clock,
                leave=self.herald.leave,
            )
        )

    @property
    def is_leading(self) -> bool:
        """Whether it is this one that tells."""
        return self._around.election.is_leading

    @property
    def writes(self) -> Mapping[ApiWrite, int]:
        """Count what was asked of the API server that changes something."""
        return self._around.server.writes

    async def run(self) -> None:
        """Work until it is cancelled; then hand over at once."""
        around = self._around
        async with asyncio.TaskGroup() as parts:
            for part in (
                around.election.hold(),
                around.maintainer.run(around.store.wait_for_work),
                self.doorbell.run(),
                self.comparison.run(),
                self.carrier.run(),
                self._lead(),
            ):
                parts.create_task(part)

    async def _lead(self) -> None:
        """Do what only one should do, for as long as this one is the one."""
        election = self._around.election
        while True:
            await election.wait(leading=True)
            self.outbox.clear()
            self.objects.doubt()
            work = [asyncio.create_task(part.run()) for part in self._leaders]
            over = asyncio.create_task(election.wait(leading=False))
            try:
                done, _ = await asyncio.wait([*work, over], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (*work, over):
                    task.cancel()
                await asyncio.wait([*work, over])
            for task in done - {over}:
                task.result()

    @property
    def _leaders(
        self,
    ) -> tuple[StatusSync, StatusWriter, EventRecorder, TtlController, WorkerPoolController]:
        return self.look, self.writer, self.herald, self.farewell, self.keeper

"""The manager: wires the parts of the controller together and runs them.

Every replica takes in objects, and one maintains the store. The leader also writes statuses and
Events, deletes expired objects and reconciles pools: two replicas that do so are harmless, and
wasteful. When a part fails the process ends, and Kubernetes starts a new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from workron.core.clock import Clock, Rng
from workron.scheduling.maintainer import Maintainer
from workron.store.api import Store
from workron_controller.jobs import resync, status_writer, ttl
from workron_controller.jobs.cache import ObjectCache
from workron_controller.jobs.custom_objects import CustomObjects
from workron_controller.jobs.informer import Informer
from workron_controller.jobs.object_handler import ObjectHandler
from workron_controller.jobs.resync import Resync
from workron_controller.jobs.status_sync import StatusSync
from workron_controller.jobs.status_writer import StatusQueue, StatusWriter
from workron_controller.jobs.submitter import Submitter
from workron_controller.jobs.ttl import TtlController
from workron_controller.jobs.workqueue import Workqueue
from workron_controller.kube.auth import ApiAccess
from workron_controller.kube.client import ApiClient, RetryingCalls
from workron_controller.kube.events import EventRecorder
from workron_controller.kube.leader_election import LeaderElection
from workron_controller.workerpools import controller
from workron_controller.workerpools.autoscaler import ConnectionBudget
from workron_controller.workerpools.config import PoolConfig, PoolDependencies
from workron_controller.workerpools.controller import WorkerPoolController

_POOL_RETRY_SECONDS: Final = 5.0
"""Short, as the pool controller starts a new round soon."""


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """Settings of the controller."""

    namespaces: Collection[str] = ()
    """The namespaces to watch; none: the whole cluster."""
    status_writes_per_second: float = 200.0
    max_worker_connections: int | None = None
    """Database connections of all workers; None: three quarters of what the database accepts."""
    status_retry_seconds: float = status_writer.RETRY_SECONDS
    resync_margin: timedelta = resync.RESYNC_MARGIN
    ttl_interval: float = ttl.INTERVAL_SECONDS
    quiet_pool_interval: float = controller.QUIET_INTERVAL


@dataclass(frozen=True, slots=True)
class ControllerDependencies:
    """The collaborators of the controller."""

    pools: PoolConfig
    store: Store
    api: ApiClient
    access: ApiAccess
    election: LeaderElection
    maintainer: Maintainer
    clock: Clock
    rng: Rng


class Manager:
    """One replica."""

    def __init__(self, deps: ControllerDependencies, config: ControllerConfig) -> None:
        self._deps = deps
        store, clock, rng = deps.store, deps.clock, deps.rng
        self.started_at = clock.monotonic()
        self.objects = ObjectCache()
        self.workqueue = Workqueue(clock)
        handler = ObjectHandler(self.objects, self.workqueue)
        retrying = RetryingCalls(clock, rng)
        cluster = CustomObjects(deps.api, retrying, config.namespaces)
        self.informer = Informer(handler, deps.access, config.namespaces, clock, rng)
        self.resync = Resync(cluster, store, handler, clock, rng, config.resync_margin)
        self.submitter = Submitter(store, self.workqueue, self.objects, cluster.is_terminating)
        rate = config.status_writes_per_second
        self.status_queue = StatusQueue(rate, burst=rate)
        self.events = EventRecorder(deps.api, retrying, clock)
        self.status_writer = StatusWriter(
            cluster.write_status,
            self.status_queue,
            self.objects,
            clock,
            self.events.record,
            config.status_retry_seconds,
        )
        pools = PoolDependencies(
            api=deps.api,
            retrying=RetryingCalls(clock, rng, seconds=_POOL_RETRY_SECONDS),
            store=store,
            budget=ConnectionBudget(config.max_worker_connections),
            config=deps.pools,
            namespaces=config.namespaces,
            clock=clock,
            record_event=self.events.record,
        )
        self.workerpools = WorkerPoolController(pools, config.quiet_pool_interval)
        self.status_sync = StatusSync(
            store,
            self.objects,
            self.status_writer.enqueue,
            self.workerpools.blocking_reason,
            clock,
        )
        self.ttl = TtlController(store, cluster.delete, self.objects, clock, config.ttl_interval)

        self.counters = (
            self.status_writer.written,
            self.status_writer.retried,
            self.events.dropped,
            self.informer.restarts,
            handler.missed_changes.counter,
            deps.api.write_counter,
        )

    @property
    def is_leading(self) -> bool:
        """Whether this replica is the leader."""
        return self._deps.election.is_leading

    async def run(self) -> None:
        """Run until it is cancelled, and release the leadership then."""
        deps = self._deps
        async with asyncio.TaskGroup() as tasks:
            for part in (
                deps.election.run(),
                deps.maintainer.run(deps.store.wait_for_work),
                self.informer.run(),
                self.resync.run(),
                self.submitter.run(),
                self._run_leader(),
            ):
                tasks.create_task(part)

    async def _run_leader(self) -> None:
        """Run the parts of the leader whenever this replica leads."""
        election = self._deps.election
        while True:
            await election.wait(leading=True)
            self.status_queue.clear()
            self.objects.mark_all_unsynced()
            parts = [
                asyncio.create_task(part)
                for part in (
                    self.status_sync.run(),
                    self.status_writer.run(),
                    self.events.run(),
                    self.ttl.run(),
                    self.workerpools.run(),
                )
            ]
            lost = asyncio.create_task(election.wait(leading=False))
            try:
                done, _ = await asyncio.wait([*parts, lost], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (*parts, lost):
                    task.cancel()
                await asyncio.wait([*parts, lost])
            for task in done - {lost}:
                task.result()

"""Metrics and readiness of a controller, computed when Prometheus or a probe asks.

They are registered beside those of the maintainer that runs in the same process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from workron_controller.jobs import resync
from workron_controller.kube.client import ApiWrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from workron.core.clock import Clock
    from workron_controller.manager import Manager
    from workron_controller.workerpools.controller import WorkerPoolController


_MAX_RESYNC_AGE: Final = 3 * resync.RESYNC_PERIOD.total_seconds()
"""A controller is not ready when its last complete resync is older than this."""


class ControllerMetrics(Collector):
    """The metrics of one controller."""

    def __init__(self, manager: Manager, registry: CollectorRegistry, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock
        registry.register(self)
        registry.register(QueueMetrics(manager.workerpools, clock))

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        for name, description, value in self._gauges():
            yield GaugeMetricFamily(f"workron_controller_{name}", description, value)
        for name, description, value in self._counters():
            yield CounterMetricFamily(f"workron_controller_{name}", description, value)
        yield from (self._missed_changes(), self._api_writes())

    def _gauges(self) -> Iterator[tuple[str, str, float]]:
        manager = self._manager
        objects = list(manager.objects)
        rejected = sum(cached.rejection is not None for cached in objects)
        active = sum(cached.is_active for cached in objects)
        queue, writer = manager.status_queue, manager.status_writer
        lag = writer.lag if manager.is_leading else 0
        yield "objects", "Jobs and Workflows that this replica knows.", len(objects)
        yield "objects_active", "Objects whose status may still have to change.", active
        yield "objects_rejected", "Objects that cannot be run.", rejected
        yield "workqueue_depth", "Objects that are not submitted yet.", len(manager.workqueue)
        yield (
            "workqueue_lag_seconds",
            "Time since the oldest object that is not submitted was added to the workqueue.",
            manager.workqueue.lag,
        )
        yield "status_queue_depth", "Statuses that are not written yet.", len(queue)
        yield "status_lag_seconds", "Time for which the oldest status waits to be written.", lag
        yield "statuses_deferred", "Statuses that were refused and are retried.", queue.deferred
        yield "leading", "1 while this replica is the leader, else 0.", manager.is_leading
        yield "resync_age_seconds", "Time since the last complete resync.", self._resync_age()

    def _counters(self) -> Iterator[tuple[str, str, float]]:
        manager = self._manager
        writer = manager.status_writer
        yield "status_writes", "Statuses written.", writer.written
        yield "status_retries", "Writes of statuses that failed and are retried.", writer.retried
        yield "events_dropped", "Events that were not written.", manager.events.dropped
        yield "watch_restarts", "Restarts of watches.", manager.informer.restarts

    def _missed_changes(self) -> Metric:
        family = CounterMetricFamily(
            "workron_controller_missed_changes",
            "Changes that no watch has reported and only a resync has found.",
            labels=("change",),
        )
        for change, count in list(self._manager.missed_changes.counts.items()):
            family.add_metric((change,), count)
        return family

    def _api_writes(self) -> Metric:
        family = CounterMetricFamily(
            "workron_controller_api_writes",
            "Writing requests to the API server by outcome.",
            labels=ApiWrite._fields,
        )
        for write, count in list(self._manager.api_writes.items()):
            family.add_metric(write, count)
        return family

    def why_not_ready(self) -> str | None:
        """Return why this replica may not know the objects of the cluster."""
        if self._manager.resync.completed_at is None:
            return "the first resync is not complete; see the log"
        if (age := self._resync_age()) > _MAX_RESYNC_AGE:
            return f"the last complete resync was {age:.0f} s ago; see the log"
        return None

    def _resync_age(self) -> float:
        completed_at = self._manager.resync.completed_at
        since = self._manager.started_at if completed_at is None else completed_at
        return self._clock.monotonic() - since


class QueueMetrics(Collector):
    """The queues of all pools; there are none on a replica that does not lead."""

    def __init__(self, workerpools: WorkerPoolController, clock: Clock) -> None:
        self._workerpools = workerpools
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        labels = ("namespace", "pool")
        depth = GaugeMetricFamily(
            "workron_queue_depth", "Jobs of a pool that wait for a worker.", labels=labels
        )
        oldest = GaugeMetricFamily(
            "workron_queue_oldest_seconds",
            "Time since the oldest queued job was submitted.",
            labels=labels,
        )
        now = self._clock.now()
        for name, demand in self._workerpools.demand.items():
            depth.add_metric(name, demand.ready)
            oldest.add_metric(name, max(0.0, (now - demand.oldest).total_seconds()))
        yield from (depth, oldest)

"""Metrics and readiness of a controller.

The parts of the controller count; gauges are computed when Prometheus asks. They are registered
beside the metrics of the maintainer that runs in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from workron.core.clock import Clock
from workron_controller.jobs import resync
from workron_controller.manager import Manager
from workron_controller.workerpools.controller import WorkerPoolController

_MAX_RESYNC_AGE: Final = 3 * resync.RESYNC_PERIOD.total_seconds()
"""A controller is not ready when its last complete resync is older than this."""


class ControllerMetrics:
    """The metrics of one controller."""

    def __init__(self, manager: Manager, registry: CollectorRegistry, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock
        for collector in (*manager.counters, QueueMetrics(manager.workerpools, clock)):
            registry.register(collector)
        for name, description, read in self._gauges():
            gauge = Gauge(f"workron_controller_{name}", description, registry=registry)
            gauge.set_function(read)

    def _gauges(self) -> Iterator[tuple[str, str, Callable[[], float]]]:
        manager, objects = self._manager, self._manager.objects
        queue, writer = manager.status_queue, manager.status_writer
        yield "objects", "Jobs and Workflows that this replica knows.", lambda: len(objects)
        yield (
            "objects_active",
            "Objects whose status may still have to change.",
            lambda: sum(cached.is_active for cached in objects),
        )
        yield (
            "objects_rejected",
            "Objects that cannot be run.",
            lambda: sum(cached.rejection is not None for cached in objects),
        )
        yield (
            "workqueue_depth",
            "Objects that are not submitted yet.",
            lambda: len(manager.workqueue),
        )
        yield (
            "workqueue_lag_seconds",
            "Time since the oldest object that is not submitted was added to the workqueue.",
            lambda: manager.workqueue.lag,
        )
        yield "status_queue_depth", "Statuses that are not written yet.", lambda: len(queue)
        yield (
            "status_lag_seconds",
            "Time for which the oldest status waits to be written.",
            lambda: writer.lag if manager.is_leading else 0,
        )
        yield (
            "statuses_deferred",
            "Statuses that were refused and are retried.",
            lambda: queue.deferred,
        )
        yield "leading", "1 while this replica is the leader, else 0.", lambda: manager.is_leading
        yield "resync_age_seconds", "Time since the last complete resync.", self._resync_age

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

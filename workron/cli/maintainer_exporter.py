"""Offers a maintainer's metrics to Prometheus, and its health to probes; for `--health` only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric

    from workron.scheduling.maintainer import MaintainerMetrics


class MaintainerExporter:
    """A Prometheus collector in a registry of its own; other threads read it."""

    def __init__(self, metrics: MaintainerMetrics) -> None:
        self._metrics = metrics
        self.why_not_ready: Callable[[], str | None] = metrics.why_not_ready
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @property
    def why_hopeless(self) -> str | None:
        """Why only a new process can maintain the store."""
        return self._metrics.why_hopeless

    def collect(self) -> Iterator[Metric]:
        """Yield every metric family."""
        metrics = self._metrics
        moved = CounterMetricFamily(
            "workron_maintainer_moved", "Jobs moved, by the verb that moved them.", labels=("verb",)
        )
        for duty, count in metrics.moved.items():
            moved.add_metric((duty,), count)
        yield moved
        yield CounterMetricFamily(
            "workron_maintainer_reaped_workers",
            "Workers reaped because their lease had expired.",
            metrics.reaped_workers,
        )
        yield CounterMetricFamily(
            "workron_maintainer_missed_edges",
            "Jobs that an audit found waiting though all their upstreams have ended; must be 0.",
            metrics.missed_jobs,
        )
        yield GaugeMetricFamily(
            "workron_maintainer_elected",
            "1 while this maintainer is elected, else 0.",
            metrics.is_elected,
        )
        yield GaugeMetricFamily(
            "workron_maintainer_round_age_seconds",
            "Time since the last completed round; before the first, since the start.",
            metrics.round_age,
        )

"""Offers a worker's metrics to Prometheus, and its health to probes; loaded for `--health` only.

Labels have few values and never the name of a job, so that the number of series stays bounded.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workron.core.clock import Clock
    from workron_worker.metrics import LatencyHistogram, WorkerMetrics


class WorkerExporter:
    """A Prometheus collector in a registry of its own; read by another thread than the agent's."""

    def __init__(self, metrics: WorkerMetrics, slots: int, clock: Clock) -> None:
        self._metrics = metrics
        self._slots = slots
        self._clock = clock
        self._started_at = clock.monotonic()
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @property
    def why_hopeless(self) -> str | None:
        """Say why only a new process can take work."""
        return self._metrics.failure

    def why_not_ready(self) -> str | None:
        """Say why no work can be taken at present; None if it can."""
        return self._metrics.why_not_ready(self._clock.monotonic())

    def collect(self) -> Iterator[Metric]:
        """Yield every metric family."""
        yield from self._counters()
        yield from self._gauges()
        yield _histogram(
            "claim_latency_seconds",
            "Latency of claim calls, retries included.",
            self._metrics.claim_seconds,
        )
        yield _histogram(
            "spawn_latency_seconds",
            "From the request to start a command until it was started, measured by the runner.",
            self._metrics.start_seconds,
        )

    def _counters(self) -> Iterator[Metric]:
        metrics = self._metrics
        yield _counter("claims", "Claims that the store has granted.", metrics.claims)
        attempts = CounterMetricFamily(
            "workron_worker_attempts",
            "Attempts whose end the store has accepted, as this worker judged them.",
            labels=["outcome", "reason"],
        )
        for labels, count in metrics.attempts.copy().items():
            attempts.add_metric(labels, count)
        yield attempts
        yield _counter(
            "stale_reports",
            "Ends that the store refused because the claim had been reaped.",
            metrics.stale_reports,
        )
        yield _counter(
            "released_claims", "Claims released without an end.", metrics.released_claims
        )
        yield _counter(
            "lease_kills",
            "Commands killed because no heartbeat was answered and the lease may have expired.",
            metrics.lease_kills,
        )
        yield _counter(
            "lost_sessions",
            "Sessions that the store reaped while this worker was alive.",
            metrics.lost_sessions,
        )

    def _gauges(self) -> Iterator[Metric]:
        metrics = self._metrics
        yield GaugeMetricFamily(
            "workron_worker_slots", "Commands that may run at once.", self._slots
        )
        yield GaugeMetricFamily(
            "workron_worker_running", "Claims that occupy a slot.", metrics.running
        )
        since = metrics.answered_heartbeat_at
        yield GaugeMetricFamily(
            "workron_worker_heartbeat_age_seconds",
            "Age of the last answered heartbeat; before the first one, since the start.",
            self._clock.monotonic() - (self._started_at if since is None else since),
        )


def _counter(name: str, description: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"workron_worker_{name}", description, value)


def _histogram(name: str, description: str, values: LatencyHistogram) -> HistogramMetricFamily:
    bounds = [*map(floatToGoString, values.bounds), "+Inf"]
    buckets = list(zip(bounds, map(float, accumulate(values.counts)), strict=True))
    return HistogramMetricFamily(f"workron_worker_{name}", description, buckets, values.total)

"""Offers a worker's metrics to Prometheus, and its health to probes; loaded for `--health` only.

Labels have few values and never the name of a job, so that the number of series stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from workron.core.clock import Clock
from workron_worker.metrics import WorkerMetrics

# The keys are also attributes of WorkerMetrics.
_COUNTERS: Final = {
    "claims": "Claims that the store has granted.",
    "stale_reports": "Ends that the store refused because the claim had been reaped.",
    "released_claims": "Claims released without an end.",
    "lease_kills": (
        "Commands killed because no heartbeat was answered and the lease may have expired."
    ),
    "lost_sessions": "Sessions that the store reaped while this worker was alive.",
}
_HISTOGRAMS: Final = {
    "claim_latency_seconds": "Latency of claim calls, retries included.",
    "spawn_latency_seconds": (
        "From the request to start a command until it was started, measured by the runner."
    ),
}


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
        metrics, prefix = self._metrics, "workron_worker_"
        for name, text in _COUNTERS.items():
            yield CounterMetricFamily(prefix + name, text, getattr(metrics, name))
        attempts = CounterMetricFamily(
            f"{prefix}attempts",
            "Attempts whose end the store has accepted, as this worker judged them.",
            labels=["outcome", "reason"],
        )
        for labels, count in metrics.attempts.copy().items():
            attempts.add_metric(labels, count)
        yield attempts
        yield GaugeMetricFamily(f"{prefix}slots", "Commands that may run at once.", self._slots)
        yield GaugeMetricFamily(f"{prefix}running", "Claims that occupy a slot.", metrics.running)
        since = metrics.answered_heartbeat_at
        yield GaugeMetricFamily(
            f"{prefix}heartbeat_age_seconds",
            "Age of the last answered heartbeat; before the first one, since the start.",
            self._clock.monotonic() - (self._started_at if since is None else since),
        )
        for name, text in _HISTOGRAMS.items():
            values = getattr(metrics, name)
            bounds = [*map(floatToGoString, values.bounds), "+Inf"]
            buckets = list(zip(bounds, map(float, accumulate(values.counts)), strict=True))
            yield HistogramMetricFamily(prefix + name, text, buckets, values.total)

"""What Prometheus reads of a maintainer: fills the port in `workron.scheduling.maintainer`.

Made by `health` for `maintain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge

from workron.scheduling import maintainer
from workron.scheduling.maintainer import Duty, MaintainerMeter

if TYPE_CHECKING:
    from workron.core.clock import Clock


class MaintainerMetrics(MaintainerMeter):
    """The meter of one maintainer, and whether it could do its work."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self.why_hopeless: str | None = None
        self._clock = clock
        self._round_at = clock.monotonic()
        self._has_round = False
        self._is_elected = False
        self._counters()
        self._gauges()

    def why_not_ready(self) -> str | None:
        """Say why it could not do its work; None if it could. A standby is ready, too."""
        if not self._has_round:
            return "no round is completed yet: the store has not answered so far"
        if (age := self._age()) >= maintainer.LEASE_SECONDS:
            return f"the last completed round is {age:.1f} s ago: the store does not answer"
        return None

    def round_over(self, *, is_elected: bool) -> None:
        """See the port, as for all of these."""
        self._is_elected = is_elected
        self._round_at = self._clock.monotonic()
        self._has_round = True

    def moved(self, duty: Duty, count: int) -> None:
        """Count jobs."""
        self._moved.labels(duty).inc(count)

    def reaped(self) -> None:
        """Count a worker."""
        self._reaped.inc()

    def missed(self, count: int) -> None:
        """Count what must not be."""
        self._missed.inc(count)

    def gave_up(self, error: BaseException) -> None:
        """Be hopeless."""
        why = str(error) or type(error).__name__
        self.why_hopeless = f"this maintainer has failed: {why}"

    def _age(self) -> float:
        return self._clock.monotonic() - self._round_at

    def _holds_office(self) -> bool:
        # Another maintainer is elected when this one has not renewed its lease for that long.
        return self._is_elected and self._age() < maintainer.LEASE_SECONDS

    def _counters(self) -> None:
        self._moved = Counter(
            "workron_maintainer_moved_total",
            "Jobs moved, by the verb that moved them.",
            ["verb"],
            registry=self.registry,
        )
        for duty in Duty:
            self._moved.labels(duty)
        self._reaped = Counter(
            "workron_maintainer_reaped_workers_total",
            "Workers reaped as they were silent for a whole lease.",
            registry=self.registry,
        )
        self._missed = Counter(
            "workron_maintainer_missed_edges_total",
            "Jobs that an audit found waiting though all their upstreams have ended; must be 0.",
            registry=self.registry,
        )

    def _gauges(self) -> None:
        elected = Gauge(
            "workron_maintainer_elected",
            "1 while this maintainer holds the office, else 0.",
            registry=self.registry,
        )
        elected.set_function(self._holds_office)
        age = Gauge(
            "workron_maintainer_round_age_seconds",
            "Time since the last completed round; before the first, since the start.",
            registry=self.registry,
        )
        age.set_function(self._age)

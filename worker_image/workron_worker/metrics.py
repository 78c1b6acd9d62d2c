"""The counters and gauges of an agent, and whether it can take work.

Plain numbers, which are always counted; `metrics_exporter` offers them to Prometheus where
`--health` is given. So the agent does not load the metrics library, and an idle one stays small.
Times are those of the agent's monotonic clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final

from workron.store.types import AttemptReport, Outcome, ReportResult

_CLAIM_BUCKETS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60,
)  # fmt: skip
_START_BUCKETS: Final = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5)


class LatencyHistogram:
    """Counts of values by bucket."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


class WorkerMetrics:
    """Counts, latencies and health of the agents of one process."""

    def __init__(self) -> None:
        self.claims = 0
        self.attempts: Counter[tuple[str, str]] = Counter({(Outcome.SUCCEEDED.value, ""): 0})
        """Accepted reports by outcome and reason."""
        self.stale_reports = 0
        self.released_claims = 0
        self.lease_kills = 0
        self.lost_sessions = 0
        self.running = 0
        self.claim_latency_seconds = LatencyHistogram(_CLAIM_BUCKETS)
        self.spawn_latency_seconds = LatencyHistogram(_START_BUCKETS)
        self.answered_heartbeat_at: float | None = None
        self.is_draining = False
        self.runner_problem: str | None = None
        """Why no command could be started, while that is so."""
        self.failure: str | None = None
        """Why the agent has failed for good; an unavailable store is not a reason."""
        self._lease_seconds: float | None = None
        self._no_lease = "this worker is not registered yet: the store has not answered so far"

    def session_began(self, lease_seconds: float, sent_at: float) -> None:
        """Note a registration, whose request was sent at `sent_at`."""
        self.answered_heartbeat_at = sent_at
        self._lease_seconds = lease_seconds

    def heartbeat_answered(self, sent_at: float) -> None:
        """Note an answered heartbeat; answers may come in any order."""
        self.answered_heartbeat_at = max(self.answered_heartbeat_at or sent_at, sent_at)

    def session_lost(self) -> None:
        """Count a session that the store has reaped."""
        self.lost_sessions += 1
        self._no_lease = "the store has reaped this worker's session; it registers again"
        self._lease_seconds = None

    def agent_failed(self, error: BaseException) -> None:
        """Note that the agent has failed."""
        self.failure = f"this worker has failed: {str(error) or type(error).__name__}"

    def reports_answered(
        self, reports: Sequence[AttemptReport], answers: Sequence[ReportResult]
    ) -> None:
        """Count reports once they are stored, by whichever call that was."""
        for report, answer in zip(reports, answers, strict=False):
            if answer is ReportResult.STALE:
                self.stale_reports += 1
            else:
                self.attempts[report.outcome.value, report.reason or ""] += 1

    def why_not_ready(self, now: float) -> str | None:
        """Say why it cannot take work; None if it can."""
        if self.is_draining:
            return "this worker is draining: it claims nothing any more"
        if self.runner_problem is not None:
            return self.runner_problem
        lease, answered_at = self._lease_seconds, self.answered_heartbeat_at
        if lease is None or answered_at is None:
            return self._no_lease
        if (age := now - answered_at) >= lease:
            return f"the last answered heartbeat is {age:.1f} s old, and the lease is {lease:g} s"
        return None

"""What Prometheus reads of a worker: fills the port in `meter`, and says whether it can take work.

Made by `workron.cli` where health is to be told. Labels have few values and never the name of a
job, so that the number of series stays what it is; the registry holds nothing of anybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from workron.store.types import Outcome, ReportResult
from workron_worker.meter import WorkerMeter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.core.clock import Clock
    from workron.store.types import AttemptReport


class WorkerHealth:
    """The signs of life of one agent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._beaten_at = clock.monotonic()
        self._lease_seconds: float | None = None
        self._why_no_lease = "this worker is not registered yet: the store has not answered so far"
        self._is_draining = False
        self.why_no_runner: str | None = None
        """What is known of a runner that is waited for."""
        self.why_hopeless: str | None = None
        """What ended the agent, if it can do nothing any more; an outage of the store does not."""

    def register(self, lease_seconds: float, sent_at: float) -> None:
        """Begin a session."""
        self._beaten_at = sent_at
        self._lease_seconds = lease_seconds

    def beat(self, sent_at: float) -> None:
        """Note a beat that was answered; answers may come in any order."""
        self._beaten_at = max(self._beaten_at, sent_at)

    def lose(self) -> None:
        """End the session."""
        self._why_no_lease = "the store took this worker's session back; it asks for a new one"
        self._lease_seconds = None

    def drain(self) -> None:
        """Take no work any more."""
        self._is_draining = True

    @property
    def beat_age(self) -> float:
        """Seconds since the last beat that was answered; before the first, since the start."""
        return self._clock.monotonic() - self._beaten_at

    def why_not_ready(self) -> str | None:
        """Say why it cannot take work; None if it can."""
        if self._is_draining:
            return "this worker is draining: it claims nothing any more"
        if self.why_no_runner is not None:
            return self.why_no_runner
        lease = self._lease_seconds
        if lease is None:
            return self._why_no_lease
        if (age := self.beat_age) >= lease:
            return f"the last answered beat is {age:.1f} s old, and the lease is {lease:g} s"
        return None


_CLAIM_BUCKETS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60,
)  # fmt: skip
_SPAWN_BUCKETS: Final = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5)


class WorkerMetrics(WorkerMeter):
    """The meter of the agents of one process."""

    def __init__(self, slots: int, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self._vitals = WorkerHealth(clock)
        self._counters()
        self._histograms()
        self._gauges(slots)

    @property
    def why_hopeless(self) -> str | None:
        """What ended the agent, if it can do nothing any more."""
        return self._vitals.why_hopeless

    def why_not_ready(self) -> str | None:
        """Say why no work can be taken; None if it can."""
        return self._vitals.why_not_ready()

    def registered(self, lease_seconds: float, sent_at: float) -> None:
        """See the port, as for all of these."""
        self._vitals.register(lease_seconds, sent_at)

    def beaten(self, sent_at: float) -> None:
        """Take its age from now on."""
        self._vitals.beat(sent_at)

    def lost(self) -> None:
        """Count it, and be ready no more."""
        self._vitals.lose()
        self._sessions_lost.inc()

    def awaits_runner(self, why: str) -> None:
        """Be ready no more."""
        self._vitals.why_no_runner = why

    def found_runner(self) -> None:
        """Be ready again."""
        self._vitals.why_no_runner = None

    def draining(self) -> None:
        """Be ready no more."""
        self._vitals.drain()

    def gave_up(self, error: BaseException) -> None:
        """Be hopeless."""
        why = str(error) or type(error).__name__
        self._vitals.why_hopeless = f"this worker has failed: {why}"

    def claimed(self, count: int, seconds: float) -> None:
        """Count claims, and time their call once."""
        self._claims.inc(count)
        self._claim_seconds.observe(seconds)

    def began(self, count: int) -> None:
        """Count up."""
        self._running.inc(count)

    def over(self) -> None:
        """Count down."""
        self._running.dec()

    def spawned(self, seconds: float) -> None:
        """Time a start."""
        self._spawn_seconds.observe(seconds)

    def reported(self, ends: Sequence[AttemptReport], answers: Sequence[ReportResult]) -> None:
        """Count an end once it is stored, by whichever call that was."""
        for end, answer in zip(ends, answers, strict=False):
            if answer is ReportResult.STALE:
                self._stale.inc()
            else:
                self._ends.labels(end.outcome, end.reason or "").inc()

    def released(self, count: int) -> None:
        """Count claims."""
        self._releases.inc(count)

    def cut_off(self, count: int) -> None:
        """Count commands."""
        self._cut_off.inc(count)

    def _counters(self) -> None:
        self._claims = self._counter("claims", "Claims that the store has granted.")
        self._ends = self._counter(
            "ends",
            "Attempts whose end the store has accepted, as this worker judged them.",
            "outcome",
            "reason",
        )
        # A series that is there from the beginning does not lose its first step.
        self._ends.labels(Outcome.SUCCEEDED, "")
        self._stale = self._counter(
            "stale_completions", "Ends that the store refused, as the claim had been taken back."
        )
        self._releases = self._counter("releases", "Claims handed back without an end.")
        self._cut_off = self._counter(
            "cut_off", "Commands ended because no beat was answered and the lease may be over."
        )
        self._sessions_lost = self._counter(
            "sessions_lost", "Sessions that the store took back while this worker lived."
        )

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"workron_worker_{name}_total", about, labels, registry=self.registry)

    def _histograms(self) -> None:
        self._claim_seconds = Histogram(
            "workron_worker_claim_latency_seconds",
            "From asking the store for claims to its answer, further tries included.",
            buckets=_CLAIM_BUCKETS,
            registry=self.registry,
        )
        self._spawn_seconds = Histogram(
            "workron_worker_spawn_latency_seconds",
            "From the order to start a command until it has started, as the runner saw it.",
            buckets=_SPAWN_BUCKETS,
            registry=self.registry,
        )

    def _gauges(self, slots: int) -> None:
        self._gauge("slots", "Commands that may run at once.").set(slots)
        self._running = self._gauge("running", "Claims that occupy a slot.")
        age = self._gauge(
            "beat_age_seconds",
            "Age of the last beat that was answered; before the first, since the start.",
        )
        age.set_function(lambda: self._vitals.beat_age)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(f"workron_worker_{name}", about, registry=self.registry)

"""What Prometheus and probes read of an operator: looked up when they ask.

Made by the command; the maintainer beside it has metrics of its own in the same registry.
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


_PERIODS: Final = 3
"""So many comparisons may be missed."""


class ControllerMetrics(Collector):
    """The numbers of one operator."""

    def __init__(self, operator: Manager, registry: CollectorRegistry, clock: Clock) -> None:
        self._operator = operator
        self._clock = clock
        registry.register(self)
        registry.register(QueueMetrics(operator.keeper, clock))

    def collect(self) -> Iterator[Metric]:
        """Look everything up."""
        operator = self._operator
        seen = list(operator.objects)
        for name, says, value in (
            ("objects", "Objects that this replica knows of.", len(seen)),
            ("objects_live", "Objects whose end is not told yet.", sum(s.is_live for s in seen)),
            (
                "objects_refused",
                "Objects that ask for what cannot be done.",
                sum(s.refusal is not None for s in seen),
            ),
            ("inbox_objects", "Objects that the store has not heard of.", len(operator.inbox)),
            (
                "inbox_lag_seconds",
                "Time since the first of what the store has not heard of was seen.",
                operator.inbox.lag,
            ),
            ("outbox_statuses", "Statuses that are not written yet.", len(operator.outbox)),
            (
                "status_lag_seconds",
                "Time for which the object has waited for its status that waits longest.",
                operator.writer.lag if operator.is_leading else 0,
            ),
            (
                "statuses_held",
                "Statuses that were refused, and are tried again at times.",
                operator.outbox.held,
            ),
            ("leading", "1 while this replica writes statuses, else 0.", operator.is_leading),
            ("comparison_age_seconds", "Time since all objects were compared.", self._age()),
        ):
            yield GaugeMetricFamily(f"workron_controller_{name}", says, value)
        for name, says, value in (
            ("status_writes", "Statuses written.", operator.writer.written),
            ("status_delays", "Statuses that had to wait.", operator.writer.delayed),
            ("events_left_out", "Events that are not written.", operator.herald.left_out),
            ("watch_restarts", "Watches that had to be begun anew.", operator.doorbell.restarts),
        ):
            yield CounterMetricFamily(f"workron_controller_{name}", says, value)
        yield from (self._missed(), self._writes())

    def _missed(self) -> Metric:
        family = CounterMetricFamily(
            "workron_controller_missed_changes",
            "Changes that no watch has told of, and only a comparison has found.",
            labels=("change",),
        )
        for change, count in list(self._operator.misses.counts.items()):
            family.add_metric((change,), count)
        return family

    def _writes(self) -> Metric:
        family = CounterMetricFamily(
            "workron_controller_api_writes",
            "Requests to the API server that change something, and what came of them.",
            labels=ApiWrite._fields,
        )
        for write, count in list(self._operator.writes.items()):
            family.add_metric(write, count)
        return family

    def why_not_ready(self) -> str | None:
        """Say why what is in the cluster may not be known here."""
        most = _PERIODS * resync.RESYNC_PERIOD.total_seconds()
        if self._operator.comparison.completed_at is None:
            return "the objects of the cluster were not compared yet: see the log"
        if (age := self._age()) > most:
            return f"the objects of the cluster were compared {age:.0f} s ago: see the log"
        return None

    def _age(self) -> float:
        at = self._operator.comparison.completed_at
        return self._clock.monotonic() - (self._operator.began_at if at is None else at)


class QueueMetrics(Collector):
    """What waits for workers, by pool; who does not lead does not look, and tells of none."""

    def __init__(self, keeper: WorkerPoolController, clock: Clock) -> None:
        self._keeper = keeper
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Look everything up."""
        depth, oldest = (
            GaugeMetricFamily(f"workron_queue_{name}", says, labels=("namespace", "pool"))
            for name, says in (
                ("depth", "Jobs of a pool that wait for a worker."),
                ("oldest_seconds", "Time since the first of them was submitted."),
            )
        )
        now = self._clock.now()
        for name, demand in self._keeper.demand.items():
            depth.add_metric(name, demand.ready)
            oldest.add_metric(name, max(0.0, (now - demand.oldest).total_seconds()))
        yield from (depth, oldest)

"""What Prometheus and probes read of an operator: looked up when they ask.

Made by the command; the maintainer beside it has metrics of its own in the same registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from workron_controller.intake import compare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from workron.core.ports import Clock
    from workron_controller.operator import Operator

_PERIODS: Final = 3
"""So many comparisons may be missed."""


class Metrics(Collector):
    """The numbers of one operator."""

    def __init__(self, operator: Operator, registry: CollectorRegistry, clock: Clock) -> None:
        self._operator = operator
        self._clock = clock
        registry.register(self)

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
            ("outbox_statuses", "Statuses that are not written yet.", len(operator.outbox)),
            ("leading", "1 while this replica writes statuses, else 0.", operator.is_leading),
            ("comparison_age_seconds", "Time since all objects were compared.", self._age()),
        ):
            yield GaugeMetricFamily(f"workron_controller_{name}", says, value)
        for name, says, value in (
            ("status_writes", "Statuses written.", operator.writer.written),
            ("status_delays", "Statuses that had to wait.", operator.writer.delayed),
            ("watch_restarts", "Watches that had to be begun anew.", operator.doorbell.restarts),
        ):
            yield CounterMetricFamily(f"workron_controller_{name}", says, value)

    def why_not_ready(self) -> str | None:
        """Say why what is in the cluster may not be known here."""
        most = _PERIODS * compare.PERIOD.total_seconds()
        if self._operator.comparison.completed_at is None:
            return "the objects of the cluster were not compared yet: see the log"
        if (age := self._age()) > most:
            return f"the objects of the cluster were compared {age:.0f} s ago: see the log"
        return None

    def _age(self) -> float:
        at = self._operator.comparison.completed_at
        return self._clock.monotonic() - (self._operator.began_at if at is None else at)

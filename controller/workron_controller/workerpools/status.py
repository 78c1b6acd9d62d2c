"""Writes the status of a WorkerPool: important changes at once, counters every 10 seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from workron.retry import RetryBackoff
from workron_controller.kube import conditions, errors, events, resources
from workron_controller.kube.events import EventTrigger, InvolvedObject, KubernetesEvent
from workron_controller.workerpools.conditions import DATABASE_UNAVAILABLE, pool_conditions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron_controller.kube.conditions import StatusReason
    from workron_controller.workerpools.config import PoolDependencies
    from workron_controller.workerpools.manifests import PoolNames
    from workron_controller.workerpools.observed import ObservedPool, PoolInput


_COUNTER_INTERVAL: Final = 10.0
_BACKOFF: Final = RetryBackoff(1.0, longest=300.0)
_COUNTERS: Final = frozenset({"busy", "queued"})
"""Fields that change all the time."""
_TRIGGERS: Final = (
    EventTrigger("Stalled", "True"),
    # It may pass, but usually an operator has to look after the database.
    EventTrigger("Ready", "False", DATABASE_UNAVAILABLE),
)

_log = structlog.get_logger(__name__)


class PoolStatusWriter:
    """The status of one pool."""

    def __init__(self, pool: PoolNames, deps: PoolDependencies) -> None:
        self._pool = pool
        self._deps = deps
        self._path = resources.WORKERPOOLS.at(pool.namespace, pool.name, "status")
        self._written_at = 0.0
        self._failures = 0
        self._last_error: str | None = None
        self._not_before = 0.0

    async def write(
        self,
        given: PoolInput,
        observed: ObservedPool,
        wanted: int,
        problem: StatusReason | None,
    ) -> None:
        """Write the status if it has changed enough."""
        status, now = self._status(given, observed, wanted, problem), self._deps.clock.monotonic()
        if now < self._not_before or not self._is_due(status, given.status, now):
            return
        try:
            await self._deps.api.replace_status(self._path, self._pool.uid, status)
        except errors.ApiError as error:
            self._defer(error)
            return
        self._failures, self._written_at, self._last_error = 0, now, None
        cause = events.newly_reported(given.status, status, _TRIGGERS)
        if cause is not None:
            pool, key = self._pool, f"{self._pool.uid}/{given.generation}"
            involved = InvolvedObject("WorkerPool", pool.namespace, pool.name, pool.uid)
            self._deps.record_event(KubernetesEvent(involved, cause, key))

    def _defer(self, error: errors.ApiError) -> None:
        if not isinstance(error, errors.TransientApiError):
            self._failures += 1
            self._not_before = self._deps.clock.monotonic() + _BACKOFF.pause(self._failures)
        if str(error) != self._last_error:
            namespace, name = self._pool.namespace, self._pool.name
            _log.warning(
                "pool status not written", namespace=namespace, pool=name, error=str(error)
            )
        self._last_error = str(error)

    def _status(
        self,
        given: PoolInput,
        observed: ObservedPool,
        wanted: int,
        problem: StatusReason | None,
    ) -> dict[str, Any]:
        before, generation = given.status, given.generation
        values = pool_conditions(problem, observed.ready_count, wanted)
        merged = conditions.merge_conditions(
            values, before.get("conditions") or (), generation, self._deps.clock.now()
        )
        if given.problem is not None:
            # The counters are unknown: keep them.
            return {**before, "observedGeneration": generation, "conditions": merged}
        return {
            "desiredReplicas": wanted,
            "replicas": sum(pod.is_live for pod in observed.pods),
            "readyReplicas": observed.ready_count,
            "busy": sum(worker.claims for worker in given.workers),
            "queued": given.queued,
            "selector": self._pool.selector,
            "observedGeneration": generation,
            "conditions": merged,
        }

    def _is_due(self, status: dict[str, Any], before: Mapping[str, Any], now: float) -> bool:
        if conditions.statuses_differ(_without_counters(status), _without_counters(before)):
            return True
        has_waited = now >= self._written_at + _COUNTER_INTERVAL
        return has_waited and conditions.statuses_differ(status, before)


def _without_counters(status: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in status.items() if name not in _COUNTERS}

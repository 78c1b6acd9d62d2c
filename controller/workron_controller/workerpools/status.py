"""Tells in a WorkerPool how it stands: soon what people wait for, the mere numbers at times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from workron_controller.jobs import status
from workron_controller.kube import conditions, errors, events
from workron_controller.kube.backoff import Backoff
from workron_controller.kube.events import InvolvedObject, KubernetesEvent
from workron_controller.workerpools.conditions import DATABASE, pool_conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workron.core.clock import Clock
    from workron_controller.jobs.cache import StatusReason
    from workron_controller.workerpools.cluster_state import PoolCluster
    from workron_controller.workerpools.manifests import PoolNames
    from workron_controller.workerpools.observed import ObservedPool
    from workron_controller.workerpools.snapshot import PoolView


_APART_SECONDS: Final = 10.0
_LONGEST_SECONDS: Final = 300.0
_PASSING: Final = frozenset({"busy", "queued"})
"""What changes all the time, and is looked at at times."""

_CALLS: Final = (("Stalled", "True", None), ("Ready", "False", DATABASE))
"""A database that is away may come back by itself, and mostly somebody has to see to that."""

_log = structlog.get_logger(__name__)


class PoolStatusWriter:
    """One pool's status, and when it was written last."""

    def __init__(
        self,
        pool: PoolNames,
        ground: PoolCluster,
        clock: Clock,
        leave: Callable[[KubernetesEvent], None],
    ) -> None:
        self._pool = pool
        self._ground = ground
        self._clock = clock
        self._leave = leave
        self._told_at = 0.0
        self._refused = Backoff(1.0, _LONGEST_SECONDS)
        self._refusal: str | None = None
        self._not_before = 0.0

    async def tell(
        self, view: PoolView, sight: ObservedPool, wanted: int, trouble: StatusReason | None
    ) -> None:
        """Write the status, if it says anything new."""
        before = view.status
        said = self._worded(view, sight, wanted, trouble)
        if self._clock.monotonic() < self._not_before or not self._is_due(said, before):
            return
        try:
            await self._ground.tell(said)
        except errors.ApiError as refused:
            self._hold(refused)
        else:
            self._refused.reset()
            self._told_at, self._refusal = self._clock.monotonic(), None
            self._call(view, events.event_if_begun(before, said, _CALLS))

    def _hold(self, refused: errors.ApiError) -> None:
        if not isinstance(refused, errors.TransientError):
            # It will be refused again, and is tried more and more seldom.
            self._not_before = self._clock.monotonic() + self._refused.more()
        about = {"namespace": self._pool.namespace, "pool": self._pool.name}
        if str(refused) != self._refusal:
            _log.warning("status is not written", error=str(refused), **about)
        self._refusal = str(refused)

    def _call(self, view: PoolView, why: StatusReason | None) -> None:
        if why is not None:
            pool = self._pool
            subject = InvolvedObject("WorkerPool", pool.namespace, pool.name, pool.uid)
            self._leave(KubernetesEvent(subject, why, f"{pool.uid}/{view.generation}"))

    def _worded(
        self, view: PoolView, sight: ObservedPool, wanted: int, trouble: StatusReason | None
    ) -> dict[str, Any]:
        before = view.status
        held = pool_conditions(trouble, sight.ready, wanted)
        now, generation = self._clock.now(), view.generation
        stands = conditions.merge_conditions(held, before.get("conditions") or (), generation, now)
        if view.trouble is not None:
            # Nothing else is known now.
            return {**before, "observedGeneration": generation, "conditions": stands}
        return {
            "desiredReplicas": wanted,
            "replicas": sum(pod.is_live for pod in sight.pods),
            "readyReplicas": sight.ready,
            "busy": sum(worker.claims for worker in view.staff),
            "queued": view.queued,
            "selector": self._pool.selector,
            "observedGeneration": generation,
            "conditions": stands,
        }

    def _is_due(self, said: dict[str, Any], before: Mapping[str, Any]) -> bool:
        if status.differs(_lasting(said), _lasting(before)):
            return True
        rested = self._clock.monotonic() >= self._told_at + _APART_SECONDS
        return rested and status.differs(said, before)


def _lasting(status: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in status.items() if name not in _PASSING}

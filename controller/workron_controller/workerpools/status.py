"""The status of a WorkerPool: why it lacks workers, its conditions, and when they are written.

A problem is a `StatusReason`. *Transient* problems end without action of a user; with any other
the pool is Stalled. *Blocking* problems stop all scaling. The rest only affects some workers, such
as those of a new revision: a pool that has its workers is Ready beside such a problem.

A status is written at once when it changes, or after up to 10 seconds if only counters do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from workron.core import errors
from workron.retry import RetryBackoff
from workron_controller.kube import conditions, events, resources
from workron_controller.kube import errors as api_errors
from workron_controller.kube.conditions import ConditionValue, StatusReason
from workron_controller.kube.events import EventTrigger, InvolvedObject, KubernetesEvent
from workron_controller.workerpools import manifests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from workron_controller.workerpools.autoscaler import ConnectionBudget
    from workron_controller.workerpools.config import PoolDependencies
    from workron_controller.workerpools.manifests import PoolNames
    from workron_controller.workerpools.observed import (
        ObservedContainer,
        ObservedPod,
        ObservedPool,
        PoolInput,
    )


IMAGE_PULL_FAILED: Final = "ImagePullFailed"
QUOTA_EXCEEDED: Final = "QuotaExceeded"
PODS_NOT_READY: Final = "PodsNotReady"
CONNECTION_LIMIT: Final = "ConnectionLimit"
INVALID_SPEC: Final = "InvalidSpec"
NAME_TAKEN: Final = "NameTaken"
NOT_ENABLED: Final = events.NOT_ENABLED
POOL_NOT_FOUND: Final = "PoolNotFound"
DATABASE_UNAVAILABLE: Final = "DatabaseUnavailable"
DATABASE_PERMISSION_DENIED: Final = "DatabasePermissionDenied"
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
API_UNAVAILABLE: Final = "ApiUnavailable"
UNSCHEDULABLE: Final = "Unschedulable"

_TRANSIENT: Final = frozenset({DATABASE_UNAVAILABLE, API_UNAVAILABLE, UNSCHEDULABLE})
_SYSTEM_WIDE: Final = frozenset({DATABASE_UNAVAILABLE, API_UNAVAILABLE})
"""Problems of all pools at once, which a job does not report."""
_PARTIAL: Final = frozenset(
    {
        CONNECTION_LIMIT,
        QUOTA_EXCEEDED,
        IMAGE_PULL_FAILED,
        PODS_NOT_READY,
        API_UNAVAILABLE,
        UNSCHEDULABLE,
    }
)
"""Problems beside which a pool can have all its workers."""
_BY_SEVERITY: Final = (QUOTA_EXCEEDED, IMAGE_PULL_FAILED, PODS_NOT_READY, UNSCHEDULABLE)

_IMAGE_ERRORS: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName"})
_MISSING_CONFIG: Final = "CreateContainerConfigError"
_START_ERRORS: Final = frozenset(
    {"CrashLoopBackOff", _MISSING_CONFIG, "CreateContainerError", "RunContainerError"}
)
_OVER_QUOTA: Final = "exceeded quota"
_MAX_MESSAGE: Final = 1000
_REASON_BY_ERROR: Final[tuple[tuple[type[errors.WorkronError], str], ...]] = (
    (api_errors.ForeignObjectError, NAME_TAKEN),
    (api_errors.InvalidError, INVALID_SPEC),
    (api_errors.ApiError, API_UNAVAILABLE),
    (errors.PermissionDeniedError, DATABASE_PERMISSION_DENIED),
)
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


def reason_for_error(
    error: errors.WorkronError, namespace: str, controller_namespace: str
) -> StatusReason | None:
    """Return the problem that an error means for a pool; None: the next round shows."""
    message = str(error)[:_MAX_MESSAGE]
    if isinstance(error, api_errors.ForbiddenError):
        return _reason_for_denial(message, namespace, controller_namespace)
    has_changed = isinstance(error, api_errors.ConflictError | api_errors.ObjectNotFoundError)
    if has_changed and not isinstance(error, api_errors.ForeignObjectError):
        return None
    reasons = (reason for kind, reason in _REASON_BY_ERROR if isinstance(error, kind))
    return StatusReason(next(reasons, DATABASE_UNAVAILABLE), message)


def _reason_for_denial(message: str, namespace: str, controller_namespace: str) -> StatusReason:
    if _OVER_QUOTA in message:
        return StatusReason(QUOTA_EXCEEDED, message)
    if "being terminated" in message:
        return StatusReason(
            NAMESPACE_TERMINATING, f"namespace {namespace} is being deleted and gets no workers"
        )
    return StatusReason(
        NOT_ENABLED,
        f"workers are not enabled in namespace {namespace}; an administrator enables them with:"
        " kubectl create rolebinding workron-pools --clusterrole=workron-pools"
        f" --serviceaccount={controller_namespace}:workron-controller --namespace {namespace}",
    )


def pool_not_found(namespace: str, name: str) -> StatusReason:
    """Return the problem that jobs wait for a pool that does not exist."""
    return StatusReason(
        POOL_NOT_FOUND,
        f"WorkerPool {name} does not exist in namespace {namespace}; create it, or name another"
        " pool in a new job",
    )


def over_budget(budget: ConnectionBudget, pool: PoolNames) -> StatusReason | None:
    """Return the problem that the database has too few connections for a pool, if it has."""
    wanted, share = budget.wanted(pool), budget.share(pool)
    if share >= wanted:
        return None
    return StatusReason(
        CONNECTION_LIMIT,
        f"the pool gets {share} of {wanted} workers: the database has connections for"
        f" {budget.max_workers} workers of all pools; raise its max_connections, or lower"
        " maxReplicas",
    )


def reason_for_jobs(problem: StatusReason | None, pool: str) -> StatusReason | None:
    """Return what a job that waits for a pool reports about the pool's problem."""
    if problem is None or problem.reason in _SYSTEM_WIDE:
        return None
    if problem.reason == NOT_ENABLED:
        return problem
    return StatusReason(problem.reason, f"WorkerPool {pool}: {problem.message}")


def reason_from_pods(observed: ObservedPool) -> StatusReason | None:
    """Return the most severe problem of a pool's ReplicaSets and pods."""
    found = _problems_of_pods(observed)
    return min(found, key=lambda one: _BY_SEVERITY.index(one.reason), default=None)


def _problems_of_pods(observed: ObservedPool) -> Iterator[StatusReason]:
    for one in observed.replica_sets:
        if one.failure is not None:
            reason = QUOTA_EXCEEDED if _OVER_QUOTA in one.failure else PODS_NOT_READY
            yield StatusReason(reason, f"cannot create pods: {one.failure}"[:_MAX_MESSAGE])
    for pod in filter(lambda pod: pod.is_live, observed.pods):
        if pod.unschedulable is not None:
            yield StatusReason(UNSCHEDULABLE, f"no node for pod {pod.name}: {pod.unschedulable}")
        for container in pod.containers:
            if container.waiting_reason in _IMAGE_ERRORS:
                yield StatusReason(IMAGE_PULL_FAILED, _message(pod, container, "has no image"))
            elif container.waiting_reason in _START_ERRORS:
                plural = "s" * (container.restarts > 1)
                after = f" after {container.restarts} restart{plural}" if container.restarts else ""
                yield StatusReason(PODS_NOT_READY, _message(pod, container, f"does not run{after}"))


def _message(pod: ObservedPod, one: ObservedContainer, what: str) -> str:
    why = f"{one.waiting_reason}: {one.message}" if one.message else one.waiting_reason
    return f"container {one.name} of pod {pod.name} {what}: {why}"[:_MAX_MESSAGE]


def lacks_secret(observed: ObservedPool) -> bool:
    """Return whether an agent cannot start because its Secret is missing."""
    return any(
        container.waiting_reason == _MISSING_CONFIG
        for pod in observed.pods
        for container in pod.containers
        if container.name == manifests.AGENT_CONTAINER
    )


def is_transient(problem: StatusReason) -> bool:
    """Return whether a problem ends without action of a user."""
    return problem.reason in _TRANSIENT


def blocks_scaling(problem: StatusReason | None) -> bool:
    """Return whether nothing can be done for a pool until a user acts."""
    return problem is not None and problem.reason not in _PARTIAL | _TRANSIENT


def pool_conditions(problem: StatusReason | None, ready: int, wanted: int) -> list[ConditionValue]:
    """Return Ready, and Stalled or Reconciling for a pool with a problem or missing workers."""
    is_ready = ready >= wanted and (problem is None or problem.reason in _PARTIAL)
    message = f"{ready} of {wanted} workers are ready"
    if is_ready:
        why = StatusReason("Ready" if wanted else "ScaledToZero", message)
    else:
        why = problem or StatusReason("Starting", message)
    found = [ConditionValue("Ready", is_ready, why.reason, why.message)]
    if problem is not None and not is_transient(problem):
        found.append(ConditionValue("Stalled", True, problem.reason, problem.message))  # noqa: FBT003
    elif not is_ready:
        found.append(ConditionValue("Reconciling", True, why.reason, why.message))  # noqa: FBT003
    return found


def pool_status(
    given: PoolInput,
    observed: ObservedPool,
    wanted: int,
    problem: StatusReason | None,
    now: datetime,
) -> Mapping[str, Any]:
    """Return the status of a pool after a reconciliation."""
    before, generation = given.status, given.generation
    values = pool_conditions(problem, observed.ready_count, wanted)
    stored = before.get("conditions") or ()
    merged = conditions.merge_conditions(values, stored, generation, now)
    status = {"observedGeneration": generation, "conditions": merged}
    if given.problem is not None:
        # The counters are unknown: keep them.
        return {**before, **status}
    return {
        "desiredReplicas": wanted,
        "replicas": sum(pod.is_live for pod in observed.pods),
        "readyReplicas": observed.ready_count,
        "busy": sum(worker.claims for worker in given.workers),
        "queued": given.queued,
        "selector": given.names.selector,
        **status,
    }


class PoolStatusWriter:
    """Writes the status of one pool."""

    def __init__(self, pool: PoolNames, deps: PoolDependencies) -> None:
        self._pool = pool
        self._deps = deps
        self._path = resources.WORKERPOOLS.at(pool.namespace, pool.name, "status")
        self._written_at = 0.0
        self._failures = 0
        self._last_error: str | None = None
        self._not_before = 0.0

    async def write(self, given: PoolInput, status: Mapping[str, Any]) -> None:
        """Write the status if it has changed enough."""
        now = self._deps.clock.monotonic()
        if now < self._not_before or not self._is_due(status, given.status, now):
            return
        try:
            await self._deps.api.replace_status(self._path, self._pool.uid, status)
        except api_errors.ApiError as error:
            self._defer(error)
            return
        self._failures, self._written_at, self._last_error = 0, now, None
        cause = events.newly_reported(given.status, status, _TRIGGERS)
        if cause is not None:
            pool, key = self._pool, f"{self._pool.uid}/{given.generation}"
            involved = InvolvedObject("WorkerPool", pool.namespace, pool.name, pool.uid)
            self._deps.record_event(KubernetesEvent(involved, cause, key))

    def _is_due(self, status: Mapping[str, Any], before: Mapping[str, Any], now: float) -> bool:
        has_waited = now >= self._written_at + _COUNTER_INTERVAL
        ignored = frozenset() if has_waited else _COUNTERS
        new, old = ({k: v for k, v in one.items() if k not in ignored} for one in (status, before))
        return conditions.statuses_differ(new, old)

    def _defer(self, error: api_errors.ApiError) -> None:
        if not isinstance(error, api_errors.TransientApiError):
            self._failures += 1
            self._not_before = self._deps.clock.monotonic() + _BACKOFF.pause(self._failures)
        if str(error) != self._last_error:
            namespace, name = self._pool.namespace, self._pool.name
            _log.warning(
                "pool status not written", namespace=namespace, pool=name, error=str(error)
            )
        self._last_error = str(error)

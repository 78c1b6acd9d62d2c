"""Why a pool does not have the workers that it should have, and its conditions. Pure.

A problem is a `StatusReason`. *Transient* problems end without action of a user; with any other
the pool is Stalled. *Blocking* problems stop all scaling. The rest only affects some workers, such
as those of a new revision: a pool that has its workers is Ready beside such a problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workron.core import errors
from workron_controller.kube import errors as api_errors
from workron_controller.kube import events
from workron_controller.kube.conditions import ConditionValue, StatusReason
from workron_controller.workerpools import manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workron_controller.workerpools.observed import ObservedContainer, ObservedPod, ObservedPool


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
_READY: Final = "Ready"
_SCALED_TO_ZERO: Final = "ScaledToZero"
_STARTING: Final = "Starting"

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
_BEING_TERMINATED: Final = "being terminated"
_MAX_MESSAGE: Final = 1000
_REASON_BY_ERROR: Final[tuple[tuple[type[errors.WorkronError], str], ...]] = (
    (api_errors.TransientApiError, API_UNAVAILABLE),
    (api_errors.ForeignObjectError, NAME_TAKEN),
    (api_errors.InvalidError, INVALID_SPEC),
    (api_errors.ApiError, API_UNAVAILABLE),
    (errors.PermissionDeniedError, DATABASE_PERMISSION_DENIED),
)


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
    if _BEING_TERMINATED in message:
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


def over_budget(wanted: int, share: int, max_workers: int) -> StatusReason:
    """Return the problem that the database has too few connections."""
    return StatusReason(
        CONNECTION_LIMIT,
        f"the pool gets {share} of {wanted} workers: the database has connections for"
        f" {max_workers} workers of all pools; raise its max_connections, or lower maxReplicas",
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
    live = (pod for pod in observed.pods if pod.is_live)
    found = [*_replica_set_problems(observed), *(one for pod in live for one in _pod_problems(pod))]
    return min(found, key=lambda one: _BY_SEVERITY.index(one.reason), default=None)


def _replica_set_problems(observed: ObservedPool) -> Iterator[StatusReason]:
    for one in observed.replica_sets:
        if one.failure is not None:
            reason = QUOTA_EXCEEDED if _OVER_QUOTA in one.failure else PODS_NOT_READY
            yield StatusReason(reason, f"cannot create pods: {one.failure}"[:_MAX_MESSAGE])


def _pod_problems(pod: ObservedPod) -> Iterator[StatusReason]:
    if pod.unschedulable is not None:
        yield StatusReason(UNSCHEDULABLE, f"no node for pod {pod.name}: {pod.unschedulable}")
    for one in pod.containers:
        if one.waiting_reason in _IMAGE_ERRORS:
            yield StatusReason(IMAGE_PULL_FAILED, _message(pod, one, "has no image"))
        elif one.waiting_reason in _START_ERRORS:
            plural = "s" * (one.restarts > 1)
            restarts = f" after {one.restarts} restart{plural}" if one.restarts else ""
            yield StatusReason(PODS_NOT_READY, _message(pod, one, f"does not run{restarts}"))


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
        why = StatusReason(_READY if wanted else _SCALED_TO_ZERO, message)
    else:
        why = problem or StatusReason(_STARTING, message)
    found = [ConditionValue("Ready", is_ready, why.reason, why.message)]
    if problem is not None and not is_transient(problem):
        found.append(ConditionValue("Stalled", True, problem.reason, problem.message))  # noqa: FBT003
    elif not is_ready:
        found.append(ConditionValue("Reconciling", True, why.reason, why.message))  # noqa: FBT003
    return found

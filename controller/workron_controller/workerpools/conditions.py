"""What keeps a pool from having the workers that it should have, and how that is told. Pure.

A trouble is a reason and a sentence for whoever can mend it. Some pass by themselves; of the others
somebody has to do something about, and then the pool is Stalled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workron.core import errors
from workron_controller.jobs.cache import StatusReason
from workron_controller.kube import errors as api_errors
from workron_controller.kube import events
from workron_controller.kube.conditions import StatusFact
from workron_controller.workerpools import manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workron_controller.workerpools.observed import ObservedContainer, ObservedPod, ObservedPool


IMAGE: Final = "ImagePullFailed"
QUOTA: Final = "QuotaExceeded"
PODS: Final = "PodsFail"
BUDGET: Final = "ConnectionBudget"
INVALID: Final = "InvalidSpec"
TAKEN: Final = "NameTaken"
NOT_ENABLED: Final = events.NOT_ENABLED
NOT_FOUND: Final = "PoolNotFound"
DATABASE: Final = "DatabaseUnavailable"
_ENDING: Final = "NamespaceTerminating"
_RIGHTS: Final = "DatabaseRights"
_SERVER: Final = "ApiUnavailable"
_UNSCHEDULED: Final = "Unschedulable"
_PASSING: Final = frozenset({DATABASE, _SERVER, _UNSCHEDULED})
"""What may be over without anybody doing anything."""
_OURS: Final = frozenset({DATABASE, _SERVER})
"""What every pool has at once, and nobody learns anything from in a job."""
_BORNE: Final = frozenset({BUDGET, QUOTA, IMAGE, PODS, _SERVER, _UNSCHEDULED})
"""What does no harm to a pool that has its workers: those of another revision, for one."""

_NO_IMAGE: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName"})
_NO_START: Final = frozenset(
    {"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)
_OVER_QUOTA: Final = "exceeded quota"
_BEING_TERMINATED: Final = "being terminated"
_MESSAGE: Final = 1000
_MEANS: Final[tuple[tuple[type[errors.WorkronError], str], ...]] = (
    (api_errors.TransientError, _SERVER),
    (api_errors.AlreadyExistsError, TAKEN),
    (api_errors.InvalidError, INVALID),
    (api_errors.ApiError, _SERVER),
    (errors.PermissionDeniedError, _RIGHTS),
)


def condition_of_error(
    error: errors.WorkronError, namespace: str, enabling: str
) -> StatusReason | None:
    """Say what an error means for a pool; `enabling` is the command that lets us work there."""
    message = str(error)[:_MESSAGE]
    if isinstance(error, api_errors.ForbiddenError):
        return _of_denial(message, namespace, enabling)
    is_over = isinstance(error, api_errors.ConflictError | api_errors.ObjectNotFoundError)
    if is_over and not isinstance(error, api_errors.AlreadyExistsError):
        # Somebody else was faster: the next look shows how things are.
        return None
    reason = next((word for kind, word in _MEANS if isinstance(error, kind)), DATABASE)
    return StatusReason(reason, message)


def _of_denial(message: str, namespace: str, enabling: str) -> StatusReason:
    if _OVER_QUOTA in message:
        return StatusReason(QUOTA, message)
    if _BEING_TERMINATED in message:
        return StatusReason(
            _ENDING, f"namespace {namespace} is being deleted: no workers come there"
        )
    return not_enabled(namespace, enabling)


def not_enabled(namespace: str, enabling: str) -> StatusReason:
    """Say by which command a namespace is opened to us."""
    return StatusReason(
        NOT_ENABLED,
        f"no workers may be run in namespace {namespace} yet; who administrates it lets them by:"
        f" {enabling}",
    )


def not_found(namespace: str, name: str) -> StatusReason:
    """Say that jobs wait for a pool that is not there."""
    return StatusReason(
        NOT_FOUND,
        f"there is no WorkerPool {name} in namespace {namespace}; make it, or name another pool"
        " in a new job",
    )


def job_hint(trouble: StatusReason | None, pool: str) -> StatusReason | None:
    """Say what a job that waits for a pool is to be told of the pool's trouble."""
    if trouble is None or trouble.reason in _OURS:
        return None
    if trouble.reason == NOT_ENABLED:
        return trouble
    return StatusReason(trouble.reason, f"WorkerPool {pool}: {trouble.message}")


def over_budget(wanted: int, share: int, most: int) -> StatusReason:
    """Say that there are more workers wanted than the database has connections for."""
    return StatusReason(
        BUDGET,
        f"{wanted} workers are wanted, and there may be {share}: the database has connections for"
        f" {most} in all; raise its max_connections, or lower maxReplicas of pools",
    )


def condition_of_pods(sight: ObservedPool) -> StatusReason | None:
    """Say what is wrong with a pool's pods, or with making them; the gravest alone."""
    found = [*_of_sets(sight), *(why for pod in sight.pods if pod.is_live for why in _of_pod(pod))]
    return min(found, key=lambda why: _GRAVITY.index(why.reason), default=None)


def is_starving(sight: ObservedPool) -> bool:
    """Tell whether an agent lacks what it needs to begin: its Secret."""
    agents = (
        one for pod in sight.pods for one in pod.containers if one.name == manifests.AGENT_CONTAINER
    )
    return any(one.waits == "CreateContainerConfigError" for one in agents)


def is_transient(trouble: StatusReason) -> bool:
    """Tell whether it may be over without anybody doing anything."""
    return trouble.reason in _PASSING


def blocks_scaling(trouble: StatusReason | None) -> bool:
    """Tell whether nothing can be done for a pool before somebody does something."""
    return trouble is not None and trouble.reason not in _BORNE | _PASSING


def pool_conditions(trouble: StatusReason | None, ready: int, wanted: int) -> list[StatusFact]:
    """Give those of a pool that should have so many workers and has so many that are ready."""
    is_ready = ready >= wanted and (trouble is None or trouble.reason in _BORNE)
    told = [_readiness(trouble, ready, wanted, is_ready=is_ready)]
    if trouble is not None and not is_transient(trouble):
        told.append(StatusFact("Stalled", True, trouble.reason, trouble.message))  # noqa: FBT003
    elif not is_ready:
        told.append(told[0]._replace(type="Reconciling", holds=True))
    return told


def _readiness(
    trouble: StatusReason | None, ready: int, wanted: int, *, is_ready: bool
) -> StatusFact:
    message = f"{ready} of {wanted} workers are ready"
    if is_ready:
        return StatusFact("Ready", True, "Ready" if wanted else "NothingToDo", message)  # noqa: FBT003
    why = trouble or StatusReason("Starting", message)
    return StatusFact("Ready", False, why.reason, why.message)  # noqa: FBT003


_GRAVITY: Final = (QUOTA, IMAGE, PODS, _UNSCHEDULED)


def _of_sets(sight: ObservedPool) -> Iterator[StatusReason]:
    for one in sight.sets:
        if one.failure is not None:
            is_quota = _OVER_QUOTA in one.failure
            yield StatusReason(
                QUOTA if is_quota else PODS, f"no pod can be made: {one.failure}"[:_MESSAGE]
            )


def _of_pod(pod: ObservedPod) -> Iterator[StatusReason]:
    if pod.unscheduled is not None:
        yield StatusReason(_UNSCHEDULED, f"no node is found for pod {pod.name}: {pod.unscheduled}")
    for one in pod.containers:
        if one.waits in _NO_IMAGE:
            yield StatusReason(IMAGE, _says(pod, one, "has no image"))
        elif one.waits in _NO_START:
            yield StatusReason(PODS, _says(pod, one, _does_not_run(one)))


def _does_not_run(one: ObservedContainer) -> str:
    restarts = f", after {one.restarts} restart{'s' * (one.restarts > 1)}" if one.restarts else ""
    return f"does not run{restarts}"


def _says(pod: ObservedPod, one: ObservedContainer, what: str) -> str:
    because = f"{one.waits}: {one.message}" if one.message else one.waits
    return f"container {one.name} of pod {pod.name} {what}: {because}"[:_MESSAGE]

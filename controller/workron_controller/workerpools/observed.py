"""The state of a pool in one round: its object, its workers, its ReplicaSets and pods. Pure.

Objects are parsed from the API server's JSON. Apart from their identity, they may lack any field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from workron_controller.kube import resources
from workron_controller.workerpools import manifests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from workron.core.model.workerpool import WorkerPoolSpec
    from workron.store.types import WorkerRow
    from workron_controller.kube.conditions import StatusReason


DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_FINISHED_PHASES: Final = frozenset({"Succeeded", "Failed"})
_STATUS_UNKNOWN: Final = "ContainerStatusUnknown"
"""The reason of a terminated container that the kubelet did not find: its end is unobserved."""
_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""A taint that an administrator sets on a machine that is off; Kubernetes relies on it, too."""


@dataclass(frozen=True, slots=True)
class PoolInput:
    """One WorkerPool, and what the store knows about it."""

    raw: Mapping[str, Any]
    spec: WorkerPoolSpec | StatusReason
    """The spec, or what is wrong with it."""
    queued: int = 0
    workers: Sequence[WorkerRow] = ()
    problem: StatusReason | None = None
    """Why nothing can be done: the store is unavailable."""

    @property
    def generation(self) -> int:
        """The generation of the object."""
        return resources.generation_of(self.raw)

    @property
    def status(self) -> Mapping[str, Any]:
        """The status of the object, which a user may have edited."""
        status = self.raw.get("status")
        return status if isinstance(status, dict) else {}

    @property
    def names(self) -> manifests.PoolNames:
        """The identity of the pool."""
        return manifests.PoolNames(*manifests.name_of(self.raw), self.raw["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class ObservedContainer:
    """A container of a pod, as its kubelet has reported it."""

    name: str
    has_ended: bool
    """Whether the kubelet has seen its end."""
    waiting_reason: str | None = None
    message: str = ""
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod."""

    name: str
    uid: str
    owner: str
    """The uid of its ReplicaSet."""
    created_at: str
    node: str | None = None
    is_ready: bool = False
    is_finished: bool = False
    """Whether its phase is final, set by the kubelet or by a user."""
    is_terminating: bool = False
    deletion_cost: int = 0
    containers: Sequence[ObservedContainer] = field(default_factory=tuple)
    unschedulable: str | None = None
    """The scheduler's message, if it finds no node."""

    @property
    def is_live(self) -> bool:
        """Whether its ReplicaSet counts it."""
        return not (self.is_finished or self.is_terminating)


@dataclass(frozen=True, slots=True)
class ObservedReplicaSet:
    """The ReplicaSet of one revision."""

    name: str
    uid: str
    revision: str
    replicas: int
    created_at: str
    failure: str | None = None
    """Why it cannot create pods."""


@dataclass(frozen=True, slots=True)
class ObservedPool:
    """All ReplicaSets, oldest first, and all pods of a pool."""

    replica_sets: Sequence[ObservedReplicaSet] = ()
    pods: Sequence[ObservedPod] = ()

    def pods_of(self, replica_set: ObservedReplicaSet) -> list[ObservedPod]:
        """Return the pods of a ReplicaSet."""
        return [pod for pod in self.pods if pod.owner == replica_set.uid]

    def live_pods(self, replica_set: ObservedReplicaSet) -> list[ObservedPod]:
        """Return the pods that a ReplicaSet counts."""
        return [pod for pod in self.pods_of(replica_set) if pod.is_live]

    @property
    def ready_count(self) -> int:
        """The number of pods that are ready and not terminating."""
        return sum(pod.is_ready and pod.is_live for pod in self.pods)

    @property
    def worker_count(self) -> int:
        """The number of workers that may be connected to the database now or soon."""
        pending = sum(max(0, one.replicas - len(self.live_pods(one))) for one in self.replica_sets)
        return sum(not pod.is_finished for pod in self.pods) + pending


def observe(
    pool: manifests.PoolNames,
    replica_sets: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
) -> ObservedPool:
    """Parse what the pool owns; objects that only have its labels belong to another owner."""
    own = [_replica_set(raw) for raw in replica_sets if _owner(raw) == pool.uid]
    uids = {one.uid for one in own}
    return ObservedPool(
        sorted(own, key=lambda one: (one.created_at, one.name)),
        [_pod(raw) for raw in pods if _owner(raw) in uids],
    )


def _owner(raw: Mapping[str, Any]) -> str | None:
    owners = raw["metadata"].get("ownerReferences") or ()
    return next((one["uid"] for one in owners if one.get("controller")), None)


def _replica_set(raw: Mapping[str, Any]) -> ObservedReplicaSet:
    metadata = raw["metadata"]
    failing = _condition(raw, "ReplicaFailure")
    return ObservedReplicaSet(
        name=metadata["name"],
        uid=metadata["uid"],
        revision=(metadata.get("labels") or {}).get(manifests.REVISION_LABEL, ""),
        replicas=(raw.get("spec") or {}).get("replicas", 1),
        created_at=metadata.get("creationTimestamp") or "",
        failure=failing.get("message") or None if failing.get("status") == "True" else None,
    )


def _pod(raw: Mapping[str, Any]) -> ObservedPod:
    metadata, status = raw["metadata"], raw.get("status") or {}
    scheduled = _condition(raw, "PodScheduled")
    is_unschedulable = scheduled.get("reason") == "Unschedulable"
    return ObservedPod(
        name=metadata["name"],
        uid=metadata["uid"],
        owner=_owner(raw) or "",
        created_at=metadata.get("creationTimestamp") or "",
        node=(raw.get("spec") or {}).get("nodeName"),
        is_ready=_condition(raw, "Ready").get("status") == "True",
        is_finished=status.get("phase") in _FINISHED_PHASES,
        is_terminating="deletionTimestamp" in metadata,
        deletion_cost=_deletion_cost(metadata.get("annotations") or {}),
        containers=[
            _container(one)
            for kind in ("initContainerStatuses", "containerStatuses")
            for one in status.get(kind) or ()
        ],
        unschedulable=scheduled.get("message") if is_unschedulable else None,
    )


def _container(raw: Mapping[str, Any]) -> ObservedContainer:
    state = raw.get("state") or {}
    terminated, waiting = state.get("terminated") or {}, state.get("waiting") or {}
    return ObservedContainer(
        name=raw["name"],
        has_ended="terminated" in state and terminated.get("reason") != _STATUS_UNKNOWN,
        waiting_reason=waiting.get("reason"),
        message=waiting.get("message") or "",
        restarts=raw.get("restartCount", 0),
    )


def _condition(raw: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found = (raw.get("status") or {}).get("conditions") or ()
    return next((one for one in found if one.get("type") == kind), {})


def _deletion_cost(annotations: Mapping[str, str]) -> int:
    try:
        return int(annotations.get(DELETION_COST, 0))
    except ValueError:
        return 0


def proof_from_pod(pod: ObservedPod) -> str | None:
    """Return the proof of a worker's death that the kubelet has seen all containers end."""
    if pod.is_finished and pod.containers and all(one.has_ended for one in pod.containers):
        return f"the kubelet reported the end of all containers of pod {pod.name}"
    return None


def is_out_of_service(node: Mapping[str, Any]) -> bool:
    """Return whether no process of a node runs anymore, because it has a taint that says so."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(taint.get("key") == _OUT_OF_SERVICE for taint in taints)

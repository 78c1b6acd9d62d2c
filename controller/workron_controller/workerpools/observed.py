"""What can be seen of a pool in its namespace, in few words: its ReplicaSets and its pods. Pure.

Made of the API server's JSON, in which anything but who it is may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from workron_controller.workerpools import manifests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_OVER: Final = frozenset({"Succeeded", "Failed"})
_UNKNOWN: Final = "ContainerStatusUnknown"
"""Where the kubelet did not find a container that it should have seen the end of."""


@dataclass(frozen=True, slots=True)
class ObservedContainer:
    """One container of a pod, as its kubelet told last."""

    name: str
    has_ended: bool
    """Whether its end was seen."""
    waits: str | None = None
    """Why it does not run."""
    message: str = ""
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """One pod of a pool."""

    name: str
    uid: str
    owner: str
    """The uid of its ReplicaSet."""
    born: str
    node: str | None = None
    is_ready: bool = False
    is_over: bool = False
    """Whether nothing of it will ever run again, says whoever said so."""
    is_ending: bool = False
    """Whether somebody has asked for its end."""
    cost: int = 0
    containers: Sequence[ObservedContainer] = field(default_factory=tuple)
    unscheduled: str | None = None
    """Why no node was found for it."""

    @property
    def is_live(self) -> bool:
        """Whether its ReplicaSet counts it."""
        return not (self.is_over or self.is_ending)


@dataclass(frozen=True, slots=True)
class ObservedReplicaSet:
    """The ReplicaSet of one revision."""

    name: str
    uid: str
    revision: str
    replicas: int
    born: str
    failure: str | None = None
    """Why it cannot make pods."""


@dataclass(frozen=True, slots=True)
class ObservedPool:
    """All that there is of a pool."""

    sets: Sequence[ObservedReplicaSet] = ()
    pods: Sequence[ObservedPod] = ()

    def of(self, one: ObservedReplicaSet) -> list[ObservedPod]:
        """Give the pods of a set."""
        return [pod for pod in self.pods if pod.owner == one.uid]

    @property
    def ready(self) -> int:
        """Count those that can work."""
        return sum(pod.is_ready and pod.is_live for pod in self.pods)

    @property
    def present(self) -> int:
        """Count those that may be connected to the database, now or soon."""
        unmade = sum(max(0, one.replicas - self._live(one)) for one in self.sets)
        return sum(not pod.is_over for pod in self.pods) + unmade

    def _live(self, one: ObservedReplicaSet) -> int:
        return sum(pod.is_live for pod in self.of(one))


def observe(
    pool: manifests.PoolNames, sets: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]
) -> ObservedPool:
    """Take in what is this pool's; what only bears its labels is somebody else's."""
    own = [_set(raw) for raw in sets if _owner(raw) == pool.uid]
    uids = {one.uid for one in own}
    return ObservedPool(
        sorted(own, key=lambda one: (one.born, one.name)),
        [_pod(raw) for raw in pods if _owner(raw) in uids],
    )


def _owner(raw: Mapping[str, Any]) -> str | None:
    owners = raw["metadata"].get("ownerReferences") or ()
    return next((one["uid"] for one in owners if one.get("controller")), None)


def _set(raw: Mapping[str, Any]) -> ObservedReplicaSet:
    metadata, status = raw["metadata"], raw.get("status") or {}
    failing = _condition(status, "ReplicaFailure")
    return ObservedReplicaSet(
        name=metadata["name"],
        uid=metadata["uid"],
        revision=(metadata.get("labels") or {}).get(manifests.REVISION_LABEL, ""),
        replicas=(raw.get("spec") or {}).get("replicas", 1),
        born=metadata.get("creationTimestamp") or "",
        failure=failing.get("message") or None if failing.get("status") == "True" else None,
    )


def _pod(raw: Mapping[str, Any]) -> ObservedPod:
    metadata, status = raw["metadata"], raw.get("status") or {}
    spec = raw.get("spec") or {}
    placing = _condition(status, "PodScheduled")
    return ObservedPod(
        name=metadata["name"],
        uid=metadata["uid"],
        owner=_owner(raw) or "",
        born=metadata.get("creationTimestamp") or "",
        node=spec.get("nodeName"),
        is_ready=_condition(status, "Ready").get("status") == "True",
        is_over=status.get("phase") in _OVER,
        is_ending="deletionTimestamp" in metadata,
        cost=_cost(metadata.get("annotations") or {}),
        containers=[
            _container(one)
            for kind in ("initContainerStatuses", "containerStatuses")
            for one in status.get(kind) or ()
        ],
        unscheduled=placing.get("message") if placing.get("reason") == "Unschedulable" else None,
    )


def _container(raw: Mapping[str, Any]) -> ObservedContainer:
    state = raw.get("state") or {}
    ended, waiting = state.get("terminated") or {}, state.get("waiting") or {}
    return ObservedContainer(
        name=raw["name"],
        has_ended="terminated" in state and ended.get("reason") != _UNKNOWN,
        waits=waiting.get("reason"),
        message=waiting.get("message") or "",
        restarts=raw.get("restartCount", 0),
    )


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found = (one for one in status.get("conditions") or () if one.get("type") == kind)
    return next(found, {})


def _cost(annotations: Mapping[str, str]) -> int:
    try:
        return int(annotations.get(DELETION_COST, 0))
    except ValueError:
        return 0

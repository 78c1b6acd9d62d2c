"""Inputs of the pure functions: specs, ReplicaSets, pods and workers with default fields."""

import itertools
from typing import Any

from workron.core.ids import WorkerId
from workron.core.model.workerpool import WorkerPoolSpec
from workron.store.types import WorkerRow
from workron_controller.workerpools.manifests import PoolNames
from workron_controller.workerpools.observed import (
    ObservedContainer,
    ObservedPod,
    ObservedPool,
    ObservedReplicaSet,
)

POOL = PoolNames("lab", "gpu", "pool-uid")

_CREATED_AT = "2026-01-01T00:00:00Z"
_numbers = itertools.count(1)


def spec(**fields: Any) -> WorkerPoolSpec:
    """Parse a spec with the fields of a manifest."""
    return WorkerPoolSpec.parse(fields)


def replica_set(revision: str = "new", replicas: int = 1, **fields: Any) -> ObservedReplicaSet:
    name, uid = f"workron-gpu-{revision}", f"{revision}-uid"
    return ObservedReplicaSet(name, uid, revision, replicas, _CREATED_AT, **fields)


def pod(name: str, revision: str = "new", **fields: Any) -> ObservedPod:
    """Return a pod that is ready, on a node."""
    defaults: dict[str, Any] = {"created_at": _CREATED_AT, "node": "node", "is_ready": True}
    return ObservedPod(name, f"{name}-uid", f"{revision}-uid", **defaults | fields)


def starting(name: str, revision: str = "new", **fields: Any) -> ObservedPod:
    """Return a pod that is not ready yet."""
    return pod(name, revision, **{"is_ready": False} | fields)


def waiting(reason: str, name: str = "runner", **fields: Any) -> ObservedContainer:
    return ObservedContainer(name, has_ended=False, waiting_reason=reason, **fields)


def worker(name: str, claims: int = 0, *, is_draining: bool = False) -> WorkerRow:
    """Return the worker of the pod of this name."""
    number = WorkerId(next(_numbers))
    return WorkerRow(number, "lab", "gpu", f"{name}-uid", 4, claims, is_draining)


def observed_pool(sets: list[ObservedReplicaSet] | None = None, *pods: ObservedPod) -> ObservedPool:
    return ObservedPool(sets or [], pods)

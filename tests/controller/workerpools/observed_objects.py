"""What the pure parts are handed: pods, sets and workers, made in few words."""

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

_numbers = itertools.count(1)


def spec(**fields: Any) -> WorkerPoolSpec:
    """Read a spec as it is written."""
    return WorkerPoolSpec.parse(fields)


def replica_set(revision: str = "new", replicas: int = 1, **about: Any) -> ObservedReplicaSet:
    return ObservedReplicaSet(
        **{
            "name": f"workron-gpu-{revision}",
            "uid": f"{revision}-uid",
            "revision": revision,
            "replicas": replicas,
            "created_at": "2026-01-01T00:00:00Z",
            **about,
        }
    )


def pod(name: str, revision: str = "new", **about: Any) -> ObservedPod:
    """Give a pod that is ready, on a node."""
    defaults: dict[str, Any] = {
        "name": name,
        "uid": f"{name}-uid",
        "owner": f"{revision}-uid",
        "created_at": "2026-01-01T00:00:00Z",
        "node": "node",
        "is_ready": True,
    }
    return ObservedPod(**defaults | about)


def starting(name: str, revision: str = "new", **about: Any) -> ObservedPod:
    return pod(name, revision, **{"is_ready": False, **about})


def waiting(waits: str, name: str = "runner", **about: Any) -> ObservedContainer:
    return ObservedContainer(name, has_ended=False, waiting_reason=waits, **about)


def worker(name: str, held: int = 0, *, is_draining: bool = False) -> WorkerRow:
    """Give the worker of the pod of this name."""
    number = WorkerId(next(_numbers))
    return WorkerRow(number, "lab", "gpu", f"{name}-uid", 4, held, is_draining)


def sight(sets: list[ObservedReplicaSet] | None = None, *pods: ObservedPod) -> ObservedPool:
    return ObservedPool(sets or [], pods)

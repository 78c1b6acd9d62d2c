"""What the pure parts are handed: pods, sets and workers, made in few words."""

import itertools
from typing import Any

from workron.core.ids import WorkerId
from workron.core.model.pool import WorkerPoolSpec
from workron.store.protocol import WorkerRow
from workron_controller.pools.shape import Pool
from workron_controller.pools.sight import Container, Pod, ReplicaSet, Sight

POOL = Pool("lab", "gpu", "pool-uid")

_numbers = itertools.count(1)


def spec(**fields: Any) -> WorkerPoolSpec:
    """Read a spec as it is written."""
    return WorkerPoolSpec.parse(fields)


def replica_set(revision: str = "new", replicas: int = 1, **about: Any) -> ReplicaSet:
    return ReplicaSet(
        **{
            "name": f"workron-gpu-{revision}",
            "uid": f"{revision}-uid",
            "revision": revision,
            "replicas": replicas,
            "born": "2026-01-01T00:00:00Z",
            **about,
        }
    )


def pod(name: str, revision: str = "new", **about: Any) -> Pod:
    """Give a pod that is ready, on a node."""
    defaults: dict[str, Any] = {
        "name": name,
        "uid": f"{name}-uid",
        "owner": f"{revision}-uid",
        "born": "2026-01-01T00:00:00Z",
        "node": "node",
        "is_ready": True,
    }
    return Pod(**defaults | about)


def starting(name: str, revision: str = "new", **about: Any) -> Pod:
    return pod(name, revision, **{"is_ready": False, **about})


def waiting(waits: str, name: str = "runner", **about: Any) -> Container:
    return Container(name, has_ended=False, waits=waits, **about)


def worker(name: str, held: int = 0, *, is_draining: bool = False) -> WorkerRow:
    """Give the worker of the pod of this name."""
    number = WorkerId(next(_numbers))
    return WorkerRow(number, "lab", "gpu", f"{name}-uid", 4, held, is_draining)


def sight(sets: list[ReplicaSet] | None = None, *pods: Pod) -> Sight:
    return Sight(sets or [], pods)

"""The input of a reconciliation: the WorkerPool, its queue and its registered workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pydantic

from workron.core.model.workerpool import WorkerPool
from workron_controller.kube import resources
from workron_controller.kube.conditions import StatusReason
from workron_controller.workerpools import conditions, configured_pools
from workron_controller.workerpools.manifests import PoolNames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.core.model.workerpool import WorkerPoolSpec
    from workron.store.types import WorkerRow


@dataclass(frozen=True, slots=True)
class PoolInput:
    """One WorkerPool, and what the store knows about it."""

    raw: Mapping[str, Any]
    spec: WorkerPoolSpec | StatusReason
    """The spec, or what is wrong with it."""
    queued: int
    workers: Sequence[WorkerRow]
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
    def pool(self) -> PoolNames:
        """The identity of the pool."""
        metadata = self.raw["metadata"]
        return PoolNames(metadata["namespace"], metadata["name"], metadata["uid"])

    @property
    def running(self) -> int:
        """The jobs of workers that claim more; those of draining workers end with them."""
        return sum(worker.claims for worker in self.workers if not worker.is_draining)


def parse_spec(raw: Mapping[str, Any]) -> WorkerPoolSpec | StatusReason:
    """Parse the spec of a pool, or return what is wrong with it."""
    try:
        return WorkerPool.parse(raw).spec
    except pydantic.ValidationError as error:
        return StatusReason(conditions.INVALID_SPEC, configured_pools.describe_errors(error))
    except Exception as error:  # noqa: BLE001 - one pool must not stop the others
        return StatusReason(conditions.INVALID_SPEC, f"cannot read the object: {error!r}")

"""What is known of a pool before anything of its own is looked at. Made by `keeper`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pydantic

from workron.core.model.workerpool import WorkerPool
from workron_controller.jobs import cache
from workron_controller.jobs.cache import StatusReason
from workron_controller.workerpools import conditions, configured_pools
from workron_controller.workerpools.manifests import PoolNames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.core.model.workerpool import WorkerPoolSpec
    from workron.store.types import WorkerRow


@dataclass(frozen=True, slots=True)
class PoolView:
    """What is known of a pool before anything of its own is looked at."""

    raw: Mapping[str, Any]
    spec: WorkerPoolSpec | StatusReason
    """Or what is wrong with it."""
    queued: int
    staff: Sequence[WorkerRow]
    trouble: StatusReason | None = None
    """What keeps everything from being done."""

    @property
    def generation(self) -> int:
        """Tell which edition of the object it is."""
        return cache.generation(self.raw)

    @property
    def status(self) -> Mapping[str, Any]:
        """Give what it says of itself; anybody may have written anything there."""
        status = self.raw.get("status")
        return status if isinstance(status, dict) else {}

    @property
    def pool(self) -> PoolNames:
        """Tell which pool it is."""
        metadata = self.raw["metadata"]
        return PoolNames(metadata["namespace"], metadata["name"], metadata["uid"])

    @property
    def running(self) -> int:
        """Count the jobs that are with workers who take more; what others have ends with them."""
        return sum(worker.claims for worker in self.staff if not worker.is_draining)


def parse_spec(raw: Mapping[str, Any]) -> WorkerPoolSpec | StatusReason:
    """Read what a pool asks for, or say what is wrong with it."""
    try:
        return WorkerPool.parse(raw).spec
    except pydantic.ValidationError as error:
        return StatusReason(conditions.INVALID, configured_pools.pool_refusal(error))
    except Exception as error:  # noqa: BLE001 - all are read together, and none may stop the others
        return StatusReason(conditions.INVALID, f"it cannot be read: {error!r}")

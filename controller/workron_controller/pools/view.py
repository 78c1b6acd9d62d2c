"""What is known of a pool before anything of its own is looked at. Made by `keeper`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pydantic

from workron.core.model.pool import WorkerPool
from workron_controller import objects
from workron_controller.objects import Why
from workron_controller.pools import asked, verdicts
from workron_controller.pools.shape import Pool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.core.model.pool import WorkerPoolSpec
    from workron.store.protocol import WorkerRow


@dataclass(frozen=True, slots=True)
class View:
    """What is known of a pool before anything of its own is looked at."""

    raw: Mapping[str, Any]
    spec: WorkerPoolSpec | Why
    """Or what is wrong with it."""
    queued: int
    staff: Sequence[WorkerRow]
    trouble: Why | None = None
    """What keeps everything from being done."""

    @property
    def generation(self) -> int:
        """Tell which edition of the object it is."""
        return objects.generation(self.raw)

    @property
    def status(self) -> Mapping[str, Any]:
        """Give what it says of itself; anybody may have written anything there."""
        status = self.raw.get("status")
        return status if isinstance(status, dict) else {}

    @property
    def pool(self) -> Pool:
        """Tell which pool it is."""
        metadata = self.raw["metadata"]
        return Pool(metadata["namespace"], metadata["name"], metadata["uid"])

    @property
    def running(self) -> int:
        """Count the jobs that are with workers who take more; what others have ends with them."""
        return sum(worker.held for worker in self.staff if not worker.is_draining)


def spec(raw: Mapping[str, Any]) -> WorkerPoolSpec | Why:
    """Read what a pool asks for, or say what is wrong with it."""
    try:
        return WorkerPool.parse(raw).spec
    except pydantic.ValidationError as error:
        return Why(verdicts.INVALID, asked.refusal(error))
    except Exception as error:  # noqa: BLE001 - all are read together, and none may stop the others
        return Why(verdicts.INVALID, f"it cannot be read: {error!r}")

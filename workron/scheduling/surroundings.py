"""What stands around jobs that wait: who is there to run them, and to bring them back.

Looked up by `get` and `describe`, for `explain`. A row alone would promise what may never come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from workron.core.ids import JobId
    from workron.store.protocol import JobRow, Mark, ReaderDoor, RootRow

_LATE: Final = timedelta(seconds=5)
"""More than a maintainer takes, and more than the clocks of two machines lie apart."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a row does not tell, of one namespace."""

    now: datetime
    is_led: bool = True
    pools: AbstractSet[str] = frozenset()
    """Those that any worker is of."""
    marks: Mapping[JobId, Mark] = field(default_factory=dict)

    def is_late(self, row: JobRow) -> bool:
        """Tell whether its time has passed, and nobody came."""
        return row.due is not None and self.now - row.due > _LATE


async def look(
    reader: ReaderDoor, namespace: str, now: datetime, root: RootRow | None = None
) -> Surroundings:
    """Look around; marks are told of one root alone."""
    workers = await reader.workers()
    return Surroundings(
        now,
        is_led=await reader.led(),
        pools={pool for where, pool in workers if where == namespace},
        marks={} if root is None else await reader.marks(root.root),
    )

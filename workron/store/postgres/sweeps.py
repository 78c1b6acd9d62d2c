"""Carrying out what was asked of a whole root, in bounded steps, each a transaction of its own.

Called by the doors that ask; what a caller leaves unfinished the maintainer goes on with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from workron.core.ids import JobId
    from workron.store.postgres.database import Database

_STEP: Final = 1000


class Sweeps:
    """Those that callers of one store drive."""

    def __init__(self, database: Database, ring: Callable[[], None]) -> None:
        self._database = database
        self._ring = ring

    async def finish(self, root: JobId) -> None:
        """Go on until nothing is left to do."""
        step = "SELECT workron.sweep_step($1, $2)"
        while not await self._database.fetch_value(step, root, _STEP):
            pass
        self._ring()

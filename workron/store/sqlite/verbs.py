"""What all doors of one SQLite store share: the lanes, the ports, the wake-up.

Each door is a class on top of it, and `store.SqliteStore` is all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from workron.store.wakeup import Wakeup

if TYPE_CHECKING:
    from collections.abc import Callable

    from workron.core.ids import SessionKey
    from workron.core.ports import Clock, Rng
    from workron.store.sqlite.lane import Lane
    from workron.store.sqlite.transaction import Transaction

_T = TypeVar("_T")


class Verbs:
    """One database; for one in memory, the lane that writes also reads."""

    def __init__(self, url: str, *, writer: Lane, reader: Lane, clock: Clock, rng: Rng) -> None:
        self.url = url
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._rng = rng
        self._wakeup = Wakeup()

    async def _write(self, work: Callable[[Transaction], _T]) -> _T:
        return await self._writer.run(work)

    async def _stir(
        self, work: Callable[[Transaction], _T], *, doer: SessionKey | None = None
    ) -> _T:
        """Write what may make something ready or end it, then wake who waits for that."""
        result = await self._writer.run(work)
        if result:
            self._wakeup.wake(doer)
        return result

    async def _read(self, work: Callable[[Transaction], _T]) -> _T:
        return await self._reader.run(work)

"""The connections and notifications that the stores of one PostgreSQL database share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from workron.store import api
from workron.store.postgres import functions
from workron.store.postgres.notify import Notifier
from workron.store.wakeup import Wakeup

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncpg import Record

    from workron.core.clock import Rng
    from workron.core.ids import JobId, SessionKey
    from workron.store.postgres.pool import ConnectionPool


_T = TypeVar("_T")

_BULK_STEP: Final = 1000
"""Jobs that one transaction of a bulk update changes."""


class PostgresDatabase(api.Database):
    """Base of all interfaces. Heartbeats have their own connection: a pool that is in use must not
    cost a worker its lease.
    """

    def __init__(self, database: ConnectionPool, heartbeats: ConnectionPool, rng: Rng) -> None:
        self.url = database.url
        self._database = database
        self._heartbeats = heartbeats
        self._rng = rng
        self._wakeup = Wakeup()
        self._notifier = Notifier(database, self._wakeup)

    async def listen(self) -> None:
        """Start to listen for notifications from other processes."""
        await self._notifier.listen()

    async def wait_for_work(self, timeout_seconds: float, worker: SessionKey | None = None) -> None:
        await self._wakeup.wait(timeout_seconds, worker)

    async def close(self) -> None:
        await self._notifier.close()
        await asyncio.gather(self._heartbeats.close(), self._database.close())

    async def _rows(
        self, statement: str, convert: Callable[[Any], _T], /, **values: Any
    ) -> list[_T]:
        text = functions.statement(statement, len(values))
        return [convert(row) for row in await self._database.fetch(text, *values.values())]

    async def _change(self, statement: str, /, **values: Any) -> int:
        return len(await self._rows(statement, tuple, **values))

    async def _step(self, operation: str, limit: int) -> int:
        moved = int(await self._call_value(operation, limit))
        if moved:
            self._notifier.notify()
        return moved

    async def _bulk_update(self, operation: str, run: JobId, **values: Any) -> bool:
        if not await self._change(operation, run=run, **values):
            return False
        await self._finish_bulk_update(run)
        return True

    async def _call(self, name: str, *values: Any) -> Sequence[Record]:
        """Call a function of `sql/`."""
        return await self._database.fetch(functions.call(name, len(values)), *values)

    async def _call_value(self, name: str, *values: Any) -> Any:
        """Call a function and return its single value."""
        return await self._database.fetch_value(functions.call(name, len(values)), *values)

    async def _finish_bulk_update(self, run: JobId) -> None:
        while not await self._call_value("bulk_update_step", run, _BULK_STEP):
            pass
        self._notifier.notify()

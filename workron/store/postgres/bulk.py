"""COPY of the rows of several tables, one after the other. Called by `submit`.

What is to be sent is worked out while the server is busy with what was sent before, be it for
another table: for some tables that takes longer here, for others there.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from asyncpg import Connection
    from asyncpg.pool import PoolConnectionProxy

    from workron.store.postgres.rows import Table

_COPY_SECONDS: Final = 600.0
_CHUNK: Final = 1 << 13
"""Worked out without a break: for the slowest rows that is half a millisecond."""
_AHEAD: Final = 256
"""So many chunks may wait to be sent: enough to even out the tables, and never much memory."""


class _Chunk(NamedTuple):
    """Some rows of one table."""

    table: str
    columns: tuple[str, ...]
    text: bytes


_END: Final = _Chunk("", (), b"")


async def copy(connection: Connection | PoolConnectionProxy, tables: Iterable[Table]) -> None:
    """Copy all rows, and leave out the tables that have none."""
    chunks = _Chunks()
    working = asyncio.create_task(chunks.work_out(tables))
    try:
        while (first := await chunks.first()) is not _END:
            await connection.copy_to_table(
                first.table,
                schema_name="workron",
                columns=first.columns,
                source=chunks.of(first.table),
                timeout=_COPY_SECONDS,
            )
        await working
    finally:
        working.cancel()


class _Chunks:
    """Those that are worked out and not sent yet."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(_AHEAD)
        self._ahead: deque[_Chunk] = deque()
        self._has_come = asyncio.Event()

    async def work_out(self, tables: Iterable[Table]) -> None:
        """Go through all rows, and tell the end of them also where it comes too early."""
        try:
            for table, columns, rows in tables:
                for text in _cut(rows):
                    await self._room.acquire()
                    self._add(_Chunk(table, columns, text))
                    # Let go what the server has room for.
                    await asyncio.sleep(0)
        finally:
            self._add(_END)

    async def first(self) -> _Chunk:
        """Give the one that is to be sent next, and keep it; the end stays the first for good."""
        if not self._ahead:
            self._has_come.clear()
            await self._has_come.wait()
        return self._ahead[0]

    async def of(self, table: str) -> AsyncIterator[bytes]:
        """Take the chunks of a table, as many at once as are there."""
        while (await self.first()).table == table:
            some = list(itertools.takewhile(lambda one: one.table == table, self._ahead))
            for _ in some:
                self._ahead.popleft()
                self._room.release()
            yield b"".join(one.text for one in some)

    def _add(self, chunk: _Chunk) -> None:
        self._ahead.append(chunk)
        self._has_come.set()


def _cut(rows: Iterable[str]) -> Iterator[bytes]:
    """Put rows together until they are worth a message."""
    some, size = [], 0
    for row in rows:
        some.append(row)
        size += len(row)
        if size >= _CHUNK:
            yield "".join(some).encode()
            some, size = [], 0
    if some:
        yield "".join(some).encode()

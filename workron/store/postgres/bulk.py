"""COPY of the rows of several tables, one after the other. Called by `submit`.

What is to be sent is worked out while the server is busy with what was sent before, be it for
another table: for some tables that takes longer here, for others there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from workron.store.postgres.copy_text import PAUSE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from asyncpg import Connection
    from asyncpg.pool import PoolConnectionProxy

    from workron.store.postgres.rows import Table

_COPY_SECONDS: Final = 600.0
_BREATH: Final = 1 << 14
"""So much is worked out without a break, in which the server is given what it has room for."""
_CHUNK: Final = 1 << 16
"""So much is sent at once: each message has its price."""
_AHEAD: Final = 32
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
                async for text in _joined(rows):
                    await self._room.acquire()
                    self._add(_Chunk(table, columns, text))
        finally:
            self._add(_END)

    async def first(self) -> _Chunk:
        """Give the one that is to be sent next, and keep it; the end stays the first for good."""
        if not self._ahead:
            self._has_come.clear()
            await self._has_come.wait()
        return self._ahead[0]

    async def of(self, table: str) -> AsyncIterator[bytes]:
        """Take the chunks of a table."""
        while (chunk := await self.first()).table == table:
            self._ahead.popleft()
            self._room.release()
            yield chunk.text

    def _add(self, chunk: _Chunk) -> None:
        self._ahead.append(chunk)
        self._has_come.set()


async def _joined(rows: Iterable[str]) -> AsyncIterator[bytes]:
    """Put rows together until they are worth a message, and pause at times."""
    text = b""
    for piece in _pieces(rows):
        text += piece
        await asyncio.sleep(0)
        if len(text) >= _CHUNK:
            yield text
            text = b""
    if text:
        yield text


def _pieces(rows: Iterable[str]) -> Iterator[bytes]:
    some, size = [], 0
    for row in rows:
        some.append(row)
        size += len(row)
        if size >= _BREATH or row == PAUSE:
            yield "".join(some).encode()
            some, size = [], 0
    yield "".join(some).encode()

"""The door for the operator alone: roots that were made from objects of its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workron.core.plan import Kind
from workron.store import protocol
from workron.store.postgres import statements
from workron.store.postgres.sweeps import Sweeps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from asyncpg import Record

    from workron.core.ids import JobId
    from workron.store.postgres.database import Database


class OperatorVerbs:
    """What is made of objects, and of their changes."""

    def __init__(self, database: Database, ring: Callable[[], None]) -> None:
        self._database = database
        self._sweeps = Sweeps(database, ring)

    async def known(self, uids: Sequence[UUID]) -> Mapping[UUID, protocol.Owned]:
        """Find what was made from these objects."""
        rows = await self._database.fetch(statements.query("known"), uids)
        return {row["uid"]: _owned(row) for row in rows}

    async def owned(self, limit: int, *, after: int = 0) -> Sequence[protocol.Owned]:
        """List some of those that have not ended."""
        return [
            _owned(row)
            for row in await self._database.fetch(statements.query("owned"), limit, after)
        ]

    async def edit(self, root: JobId, wish: protocol.Wish) -> bool:
        """Have all of a root be as its object says now."""
        asked = wish.generation, wish.is_cancelled, wish.is_suspended, wish.priority
        is_asked = await self._database.fetch_value(statements.call("edit", 5), root, *asked)
        if is_asked:
            await self._sweeps.finish(root)
        return bool(is_asked)


def _owned(row: Record) -> protocol.Owned:
    return protocol.Owned(**dict(row) | {"kind": Kind(row["kind"])})

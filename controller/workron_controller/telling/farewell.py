"""Deletes objects that have ended and had their time; their jobs stay in the store's history."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from workron_controller.api import errors

if TYPE_CHECKING:
    from workron.core.ports import Clock
    from workron_controller.objects import Objects, Seen

_REST_SECONDS: Final = 5.0
_AT_ONCE: Final = 100

_log = structlog.get_logger(__name__)


class Delete(Protocol):
    """Deletes one object."""

    async def __call__(self, seen: Seen, /) -> None:
        """Delete it, if it still is the same, or raise one of `api.errors`."""


class Farewell:
    """Deletes for as long as it runs."""

    def __init__(self, delete: Delete, objects: Objects, clock: Clock) -> None:
        self._delete = delete
        self._objects = objects
        self._clock = clock

    async def run(self) -> None:
        """Go on for ever."""
        while True:
            await self.part()
            await asyncio.sleep(_REST_SECONDS)

    async def part(self) -> None:
        """Delete some of those whose time has come."""
        now = self._clock.now()
        due = [seen for seen in self._objects if is_due(seen, now)]
        for seen in due[:_AT_ONCE]:
            try:
                await self._delete(seen)
            except errors.ApiError as trouble:
                about = {"kind": seen.kind, "namespace": seen.namespace, "name": seen.name}
                _log.warning("object is not deleted", error=str(trouble), **about)
            else:
                self._objects.forget(seen.uid)


def is_due(seen: Seen, now: datetime) -> bool:
    """Tell whether an object has ended, and so long ago that it is to leave."""
    if seen.ttl_seconds is None or not seen.is_told_over:
        return False
    finished = _read(seen.said.get("finishedAt"))
    return finished is not None and finished + timedelta(seconds=seen.ttl_seconds) <= now


def _read(text: object) -> datetime | None:
    try:
        read = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)

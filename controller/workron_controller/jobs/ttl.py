"""Deletes objects that have ended and had their time; their jobs stay in the store's history."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from workron.core import errors
from workron_controller.kube import conditions
from workron_controller.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from workron.core.clock import Clock
    from workron.store.api import OperatorStore
    from workron_controller.jobs.cache import CachedObject, ObjectCache


_REST_SECONDS: Final = 5.0
_AT_ONCE: Final = 100

_log = structlog.get_logger(__name__)


class DeleteObject(Protocol):
    """Deletes one object."""

    async def __call__(self, seen: CachedObject, /) -> None:
        """Delete it, if it still is the same, or raise one of `api.errors`."""


class TtlController:
    """Deletes for as long as it runs."""

    def __init__(
        self, store: OperatorStore, delete: DeleteObject, objects: ObjectCache, clock: Clock
    ) -> None:
        self._store = store
        self._delete = delete
        self._objects = objects
        self._clock = clock

    async def run(self) -> None:
        """Go on for ever."""
        while True:
            try:
                await self.part()
            except errors.StoreError as trouble:
                _log.warning("nobody is deleted while the store is away", error=str(trouble))
            await asyncio.sleep(_REST_SECONDS)

    async def part(self) -> None:
        """Delete some of those whose time has come."""
        now = self._clock.now()
        due = [seen for seen in self._objects if is_due(seen, now)]
        for seen in await self._over(due[:_AT_ONCE]):
            try:
                await self._delete(seen)
            except ApiError as trouble:
                about = {"kind": seen.kind, "namespace": seen.namespace, "name": seen.name}
                _log.warning("object is not deleted", error=str(trouble), **about)
            else:
                self._objects.forget(seen.uid)

    async def _over(self, some: Sequence[CachedObject]) -> Sequence[CachedObject]:
        """Leave out whose job goes on: anybody may have written that it has ended."""
        known = await self._store.find_by_uid([seen.uid for seen in some]) if some else {}
        over = []
        for seen in some:
            if (owned := known.get(seen.uid)) is None or owned.has_ended:
                over.append(seen)
            else:
                # What it says is mended by the next look, which is at all whose job is known.
                seen.run, seen.looked = owned.run, None
        return over


def is_due(seen: CachedObject, now: datetime) -> bool:
    """Tell whether an object has ended, and so long ago that it is to leave."""
    if seen.ttl_seconds is None or not seen.is_told_over:
        return False
    finished = conditions.parse_time(seen.said.get("finishedAt"))
    # No sum of them, which may be in no year that there is.
    return finished is not None and (now - finished).total_seconds() >= seen.ttl_seconds

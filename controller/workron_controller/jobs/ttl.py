"""The TTL controller: deletes finished objects after `ttlSecondsAfterFinished`.

Their jobs stay in the history of the store. A status can be edited by users, so an object is
deleted only if the store agrees that its run has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

import structlog

from workron.core import errors
from workron.core.clock import Clock
from workron.store.api import OperatorStore
from workron_controller.jobs.cache import CachedObject, ObjectCache
from workron_controller.kube import conditions
from workron_controller.kube.errors import ApiError

INTERVAL_SECONDS: Final = 5.0
_MAX_DELETIONS: Final = 100
"""Per interval."""

_log = structlog.get_logger(__name__)


class TtlController:
    """Deletes expired objects; `delete` raises ApiError where it cannot."""

    def __init__(
        self,
        store: OperatorStore,
        delete: Callable[[CachedObject], Awaitable[None]],
        objects: ObjectCache,
        clock: Clock,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        self._store = store
        self._delete = delete
        self._objects = objects
        self._clock = clock
        self._interval = interval

    async def run(self) -> None:
        """Delete expired objects until it is cancelled."""
        while True:
            try:
                await self.run_once()
            except errors.StoreError as error:
                _log.warning("expired objects not deleted", error=str(error))
            await asyncio.sleep(self._interval)

    async def run_once(self) -> None:
        """Delete the first expired objects."""
        now = self._clock.now()
        expired = [cached for cached in self._objects if is_expired(cached, now)][:_MAX_DELETIONS]
        uids = [cached.uid for cached in expired]
        known = await self._store.find_by_uid(uids) if uids else {}
        for cached in expired:
            if (owned := known.get(cached.uid)) is not None and not owned.has_ended:
                # The status sync writes the status of every object that has a run.
                cached.run_found(owned.run)
                cached.status_synced(None)
                continue
            try:
                await self._delete(cached)
            except ApiError as error:
                _log.warning("object not deleted", error=str(error), **cached.log_fields)
            else:
                self._objects.remove(cached.uid)


def is_expired(cached: CachedObject, now: datetime) -> bool:
    """Return whether an object has finished, and its time to live is over."""
    ttl = cached.latest.ttl_seconds
    if ttl is None or not cached.is_finished:
        return False
    finished = conditions.parse_time(cached.status.get("finishedAt"))
    # A sum of the two can be a year that datetime does not have; a difference cannot.
    return finished is not None and (now - finished).total_seconds() >= ttl

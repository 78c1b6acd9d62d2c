"""Looks at how the jobs of all live objects stand, again and again, and has told what is new.

A look asks for rows and remembers nothing of its own but what was told: whatever was missed, the
next look finds. It rests for some times as long as it took, so that many objects never keep the
database busy with it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from workron.core import errors
from workron.core.plan import Kind
from workron.core.states import TERMINAL_STATES
from workron.scheduling import job_view
from workron_controller.jobs import status
from workron_controller.jobs.status_writer import PendingStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from workron.core.clock import Clock
    from workron.core.ids import JobId
    from workron.store.api import ReadStore
    from workron.store.types import JobRow
    from workron_controller.jobs.cache import CachedObject, ObjectCache, StatusReason
    from workron_controller.jobs.status import Status


if TYPE_CHECKING:
    Hint = Callable[[str, str], StatusReason | None]
    """What keeps jobs of this namespace and pool from being claimed, if anything does."""

_AT_ONCE: Final = 1_000
_LEAST_SECONDS: Final = 0.25
_RESTS: Final = 4
_COUNTED_SECONDS: Final = 5.0
"""A workflow is counted anew no more often than that, while its own row stays as it is."""

_log = structlog.get_logger(__name__)


class PutStatus(Protocol):
    """Has an object say something."""

    def __call__(self, letter: PendingStatus) -> None:
        """Say it as soon as may be."""


class StatusSync:
    """Looks for as long as it runs."""

    def __init__(
        self, store: ReadStore, objects: ObjectCache, tell: PutStatus, hint: Hint, clock: Clock
    ) -> None:
        self._store = store
        self._objects = objects
        self._tell = tell
        self._hint = hint
        self._clock = clock

    async def run(self) -> None:
        """Go on for ever."""
        while True:
            began = self._clock.monotonic()
            try:
                await self.look()
            except errors.StoreError as trouble:
                _log.warning("store cannot be looked at", error=str(trouble))
            took = self._clock.monotonic() - began
            await asyncio.sleep(max(_LEAST_SECONDS, _RESTS * took))

    async def look(self) -> None:
        """Look once at everything."""
        live = [seen for seen in self._objects if seen.is_live]
        for seen in live:
            if seen.refusal is not None:
                now = self._clock.now()
                self._say(seen, status.refused_status(seen, seen.refusal, now), is_end=False)
        stored = [seen for seen in live if seen.run is not None]
        for first in range(0, len(stored), _AT_ONCE):
            await self._look_at(stored[first : first + _AT_ONCE])

    async def _look_at(self, some: Sequence[CachedObject]) -> None:
        by_root: dict[JobId, CachedObject] = {
            seen.run: seen for seen in some if seen.run is not None
        }
        for row in await self._store.get_jobs(list(by_root)):
            seen = by_root[row.job]
            seen.end = row.state if row.state in TERMINAL_STATES else None
            if (looked := self._looked(seen, row)) != seen.looked:
                self._say(seen, await self._worded(seen, row), is_end=row.state in TERMINAL_STATES)
                seen.looked = looked

    def _looked(self, seen: CachedObject, row: JobRow) -> Hashable:
        """Put into one value all that a status depends on."""
        counted = None
        if seen.kind is Kind.WORKFLOW:
            counted = self._clock.monotonic() // _COUNTED_SECONDS
        hint = self._hinder(seen, row)
        stands = row.state, row.reason, row.attempts, row.losses, row.worker, row.due
        return *stands, counted, seen.is_suspended, hint

    def _hinder(self, seen: CachedObject, row: JobRow) -> StatusReason | None:
        """Say what keeps its jobs from being claimed, whichever of its pools they are in."""
        if seen.kind is not Kind.WORKFLOW:
            return self._hint(seen.namespace, row.pool)
        hints = [self._hint(seen.namespace, pool) for pool in seen.pools]
        return hints[0] if hints and all(hints) else None

    async def _worded(self, seen: CachedObject, row: JobRow) -> Status:
        now, hint = self._clock.now(), self._hinder(seen, row)
        if seen.kind is Kind.WORKFLOW:
            progress = await self._store.count_states(row.job)
            failures = await self._store.list_failures(row.job, job_view.MAX_FAILURES)
            return status.workflow_status(seen, row, hint, progress, failures, now)
        output = b""
        if row.state in TERMINAL_STATES:
            output = await self._store.read_output(row.job, last=job_view.TAIL_READ_BYTES)
        return status.job_status(seen, row, hint, output, now)

    def _say(self, seen: CachedObject, said: Status, *, is_end: bool) -> None:
        self._tell(PendingStatus(seen.uid, said, is_end))

"""The workqueue: objects that were observed and are not submitted to the store yet.

It holds the newest version of each object in the order in which the objects came, as a Kubernetes
workqueue does. Watches and lists add to it and must never block, so it is bounded: an object that
finds it full is dropped, and `has_overflowed` triggers a resync. The submitter empties it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from workron.core.clock import Clock
from workron.core.plan import Kind

MAX_QUEUED_OBJECTS: Final = 20_000
_MAX_BYTES: Final = 64 << 20
"""One object can have 1.5 MB, so a limit on the number of objects alone does not bound memory."""


@dataclass(frozen=True, slots=True)
class QueuedObject:
    """An object as it was observed, or a deleted one."""

    uid: UUID
    kind: Kind
    json: bytes | None
    """The object as JSON text, which needs a fraction of the decoded size. None: deleted."""

    @property
    def size(self) -> int:
        """The bytes that count toward the limit of the queue."""
        return len(self.json or b"")

    def decode(self) -> Mapping[str, Any]:
        """Return the object."""
        decoded: Mapping[str, Any] = json.loads(self.json or b"{}")
        return decoded


class Workqueue:
    """A bounded queue without duplicates."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queued: dict[UUID, tuple[float, QueuedObject]] = {}
        """Each object, and when its first version was added."""
        self._in_progress: dict[UUID, float] = {}
        """When the objects of the last batch were added; the next `take` ends their processing."""
        self._bytes = 0
        self._is_filled = asyncio.Event()
        self.has_overflowed = asyncio.Event()
        """Set when an object was dropped; a resync clears it before it lists all objects."""

    def __len__(self) -> int:
        return len(self._queued)

    @property
    def lag(self) -> float:
        """The seconds since the oldest unprocessed object was added."""
        # Copies: metrics are read in another thread.
        queued, in_progress = [*self._queued.values()], [*self._in_progress.values()]
        times = [*(since for since, _ in queued), *in_progress]
        return self._clock.monotonic() - min(times) if times else 0.0

    def add(self, item: QueuedObject) -> None:
        """Add an object in place of an older version of it, or drop it if the queue is full."""
        self._add(item, self._clock.monotonic())

    def _add(self, item: QueuedObject, since: float) -> None:
        since, replaced = self._queued.get(item.uid, (since, None))
        size = self._bytes + item.size - (replaced.size if replaced else 0)
        if size > _MAX_BYTES or (replaced is None and len(self._queued) >= MAX_QUEUED_OBJECTS):
            self.has_overflowed.set()
            return
        self._queued[item.uid] = since, item
        self._bytes = size
        self._is_filled.set()

    async def take(self, max_items: int, max_bytes: int) -> Sequence[QueuedObject]:
        """Wait for objects and remove the first ones, at least one; ends the batch before it."""
        self._in_progress = {}
        while not self._queued:
            self._is_filled.clear()
            await self._is_filled.wait()
        taken: list[QueuedObject] = []
        bytes_left = max_bytes
        for since, item in list(self._queued.values())[:max_items]:
            if taken and item.size > bytes_left:
                break
            bytes_left -= item.size
            taken.append(item)
            del self._queued[item.uid]
            self._in_progress[item.uid] = since
        self._bytes -= sum(item.size for item in taken)
        return taken

    def requeue(self, items: Sequence[QueuedObject]) -> None:
        """Add objects of the last batch again, unless a newer version was added meanwhile."""
        for item in items:
            if item.uid not in self._queued:
                self._add(item, self._in_progress.get(item.uid, self._clock.monotonic()))

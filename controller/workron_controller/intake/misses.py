"""Counts what no watch has told of, and only the comparison of all objects has found.

A watch is a moment late by its nature, so what is as young as that is not counted: of what came or
was edited the object says when, and of what is gone the watch may tell until the next comparison.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from workron_controller import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from workron_controller.objects import Seen


class Change(StrEnum):
    """What a watch should have told of."""

    ADDED = "Added"
    EDITED = "Edited"
    DELETED = "Deleted"


class Misses:
    """Those of one replica, since it began to watch."""

    def __init__(self) -> None:
        self.counts = Counter(dict.fromkeys(Change, 0))
        self._gone: set[UUID] = set()

    def listed(self, raw: Mapping[str, Any], known: Seen | None, before: datetime) -> None:
        """Take note of an object in a list, what was known of it, and until when it is due."""
        metadata = raw["metadata"]
        if known is None:
            self._count(Change.ADDED, _read(metadata.get("creationTimestamp")), before)
        elif objects.generation(raw) > known.generation:
            self._count(Change.EDITED, max(_edits(metadata), default=None), before)

    def lacked(self, uid: UUID) -> None:
        """Take note that a list has it no more."""
        self._gone.add(uid)

    def told_gone(self, uid: UUID) -> None:
        """Take note that a watch tells the same."""
        self._gone.discard(uid)

    def settle(self) -> None:
        """Give up waiting for watches to tell of what lists lacked."""
        self.counts[Change.DELETED] += len(self._gone)
        self._gone.clear()

    def _count(self, change: Change, at: datetime | None, before: datetime) -> None:
        # Of what does not say when it was nothing can be said.
        self.counts[change] += at is not None and at < before


def _edits(metadata: Mapping[str, Any]) -> Iterator[datetime]:
    """Give when its spec was written, by each who has written it."""
    for one in metadata.get("managedFields") or ():
        if not one.get("subresource") and (at := _read(one.get("time"))) is not None:
            yield at


def _read(text: object) -> datetime | None:
    try:
        read = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)

"""Takes observed objects into the cache and the workqueue, and counts what watches have missed.

The informer calls it for each watch event and the resync for each listed object. It never blocks,
and no object can make it fail.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog

from workron_controller.jobs import object_parser
from workron_controller.jobs.workqueue import QueuedObject
from workron_controller.kube import resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from workron.core.plan import Kind
    from workron_controller.jobs.cache import CachedObject, ObjectCache
    from workron_controller.jobs.workqueue import Workqueue


_log = structlog.get_logger(__name__)


class ObjectHandler:
    """The handler of added, changed and deleted objects."""

    def __init__(self, objects: ObjectCache, workqueue: Workqueue) -> None:
        self.objects = objects
        self.workqueue = workqueue
        self.missed_changes = MissedChanges()

    def handle_update(self, kind: Kind, raw: Mapping[str, Any]) -> UUID | None:
        """Take in an object as it is now, and return its uid; None if it is malformed."""
        return handle_safely(self._update, kind, raw)

    def handle_delete(self, kind: Kind, raw: Mapping[str, Any]) -> UUID | None:
        """Take in that an object was deleted."""
        return handle_safely(self._delete, kind, raw)

    def _update(self, kind: Kind, raw: Mapping[str, Any]) -> UUID:
        if raw["metadata"].get("deletionTimestamp"):
            # A finalizer of others may keep it for long, but its user wants it to end now.
            return self._delete(kind, raw)
        cached = self.objects.upsert(object_parser.parse_object(kind, raw))
        if cached.needs_submit:
            self.workqueue.add(QueuedObject(cached.uid, kind, _encode(raw)))
        return cached.uid

    def _delete(self, kind: Kind, raw: Mapping[str, Any]) -> UUID:
        uid = UUID(raw["metadata"]["uid"])
        self.objects.remove(uid)
        self.missed_changes.deletion_seen(uid)
        self.workqueue.add(QueuedObject(uid, kind, None))
        return uid


def handle_safely(
    handle: Callable[[Kind, Mapping[str, Any]], UUID | None], kind: Kind, raw: Mapping[str, Any]
) -> UUID | None:
    """Handle an object; an error is logged, so that it ends neither a watch nor a list."""
    try:
        return handle(kind, raw)
    except Exception:  # noqa: BLE001 - see above
        _log.exception("object not handled", kind=kind, metadata=raw.get("metadata"))
        return None


def _encode(raw: Mapping[str, Any]) -> bytes:
    """Encode an object without its status and managed fields, which can be half of it."""
    metadata = {name: value for name, value in raw["metadata"].items() if name != "managedFields"}
    wanted = {name: value for name, value in raw.items() if name != "status"}
    # The only encoder here that takes any string and number, such as half a surrogate pair.
    return json.dumps(wanted | {"metadata": metadata}, separators=(",", ":")).encode()


class ChangeType(StrEnum):
    """A change that a watch should have reported."""

    ADDED = "Added"
    EDITED = "Edited"
    DELETED = "Deleted"


class MissedChanges:
    """Counts changes that no watch has reported and only a resync has found."""

    def __init__(self) -> None:
        self.counts = Counter(dict.fromkeys(ChangeType, 0))
        self._deleted: set[UUID] = set()

    def check_listed(
        self, raw: Mapping[str, Any], known: CachedObject | None, before: datetime
    ) -> None:
        """Count a listed object as missed if a watch should have reported it before this time."""
        metadata = raw["metadata"]
        if known is None:
            self._count(ChangeType.ADDED, _parse(metadata.get("creationTimestamp")), before)
        elif resources.generation_of(raw) > known.latest.generation:
            self._count(ChangeType.EDITED, max(_spec_times(metadata), default=None), before)

    def expect_deletion(self, uid: UUID) -> None:
        """Wait for a watch to report the deletion of an object that a list lacks."""
        self._deleted.add(uid)

    def deletion_seen(self, uid: UUID) -> None:
        """A watch has reported the deletion."""
        self._deleted.discard(uid)

    def close_window(self) -> None:
        """Count the deletions that no watch has reported since the last resync."""
        self.counts[ChangeType.DELETED] += len(self._deleted)
        self._deleted.clear()

    def _count(self, change: ChangeType, at: datetime | None, before: datetime) -> None:
        self.counts[change] += at is not None and at < before


def _spec_times(metadata: Mapping[str, Any]) -> Iterator[datetime]:
    """Yield when each field manager last wrote the spec."""
    for entry in metadata.get("managedFields") or ():
        if not entry.get("subresource") and (at := _parse(entry.get("time"))) is not None:
            yield at


def _parse(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

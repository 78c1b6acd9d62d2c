"""Takes observed objects into the cache and the workqueue, and counts what watches have missed.

The informer calls it for each watch event and the resync for each listed object. It never blocks,
and no object can make it fail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import structlog
from prometheus_client import Counter

from workron.core.plan import Kind
from workron_controller.jobs import object_parser
from workron_controller.jobs.cache import ObjectCache
from workron_controller.jobs.workqueue import QueuedObject, Workqueue
from workron_controller.kube import conditions, resources

_log = structlog.get_logger(__name__)


class ObjectHandler:
    """The handler of added, changed and deleted objects."""

    def __init__(self, objects: ObjectCache, workqueue: Workqueue) -> None:
        self.objects = objects
        self.workqueue = workqueue
        self.missed_changes = MissedChanges(objects)

    def handle(
        self,
        kind: Kind,
        raw: Mapping[str, Any],
        *,
        is_deleted: bool = False,
        expected_before: datetime | None = None,
    ) -> UUID | None:
        """Take in an object, and return its uid; None if it is malformed.

        `expected_before`: it was listed, and watches should have reported changes before this time.
        """
        try:
            if expected_before is not None:
                self.missed_changes.check_listed(raw, expected_before)
            # A finalizer of others may keep it for long, but its user wants it to end now.
            if is_deleted or raw["metadata"].get("deletionTimestamp"):
                uid = UUID(raw["metadata"]["uid"])
                self.objects.remove(uid)
                self.missed_changes.deletion_seen(uid)
                self.workqueue.add(QueuedObject(uid, kind, None))
                return uid
            cached = self.objects.upsert(object_parser.parse_object(kind, raw))
            if cached.needs_submit:
                self.workqueue.add(QueuedObject(cached.uid, kind, _encode(raw)))
        except Exception:  # noqa: BLE001 - one object must end neither a watch nor a list
            _log.exception("object not handled", kind=kind, metadata=raw.get("metadata"))
            return None
        return cached.uid


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

    def __init__(self, objects: ObjectCache) -> None:
        self._objects = objects
        self._deleted: set[UUID] = set()
        self.counter = Counter(
            "workron_controller_missed_changes",
            "Changes that no watch has reported and only a resync has found.",
            ["change"],
            registry=None,
        )
        for change in ChangeType:
            self.counter.labels(change)

    def check_listed(self, raw: Mapping[str, Any], before: datetime) -> None:
        """Count a listed object as missed if a watch should have reported it before this time."""
        metadata = raw["metadata"]
        known = self._objects.get(UUID(metadata["uid"]))
        if known is None:
            change, times = ChangeType.ADDED, [metadata.get("creationTimestamp")]
        elif resources.generation_of(raw) > known.latest.generation:
            # When each field manager last wrote the spec.
            change, times = (
                ChangeType.EDITED,
                [
                    entry.get("time")
                    for entry in metadata.get("managedFields") or ()
                    if not entry.get("subresource")
                ],
            )
        else:
            return
        changed_at = max(filter(None, map(conditions.parse_time, times)), default=None)
        if changed_at is not None and changed_at < before:
            self.counter.labels(change).inc()

    def expect_deletion(self, uid: UUID) -> None:
        """Wait for a watch to report the deletion of an object that a list lacks."""
        self._deleted.add(uid)

    def deletion_seen(self, uid: UUID) -> None:
        """A watch has reported the deletion."""
        self._deleted.discard(uid)

    def close_window(self) -> None:
        """Count the deletions that no watch has reported since the last resync."""
        self.counter.labels(ChangeType.DELETED).inc(len(self._deleted))
        self._deleted.clear()

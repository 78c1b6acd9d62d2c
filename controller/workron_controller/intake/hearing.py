"""What is done with an object the moment it is seen, by a watch or in a list: next to nothing.

It is noted who it is; and if the store has not heard of that edition, it goes to the inbox. So what
we write into a status ourselves comes back to nobody.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import structlog

from workron_controller.intake import reading
from workron_controller.intake.inbox import News
from workron_controller.intake.misses import Misses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workron.core.plan import Kind
    from workron_controller.intake.inbox import Inbox
    from workron_controller.objects import Objects, Seen

_MANAGED: Final = "managedFields"
_STATUS: Final = "status"

_log = structlog.get_logger(__name__)


class Ear:
    """Hears of objects; never waits."""

    def __init__(self, objects: Objects, inbox: Inbox) -> None:
        self.objects = objects
        self.inbox = inbox
        self.misses = Misses()

    def hear(self, kind: Kind, raw: Mapping[str, Any]) -> UUID | None:
        """Take in an object as it is now, and give its uid; None if it cannot be taken for one."""
        return safely(self._hear, kind, raw)

    def hear_gone(self, kind: Kind, raw: Mapping[str, Any]) -> UUID | None:
        """Take in that there is no such object any more."""
        return safely(self._hear_gone, kind, raw)

    def _hear(self, kind: Kind, raw: Mapping[str, Any]) -> UUID:
        if raw["metadata"].get("deletionTimestamp"):
            # Others may hold it up for long; who deletes it wants it to end now.
            return self._hear_gone(kind, raw)
        seen = self.objects.note(reading.seen(kind, raw))
        if _is_news(seen):
            self.inbox.put(News(seen.uid, kind, _kept(raw)))
        return seen.uid

    def _hear_gone(self, kind: Kind, raw: Mapping[str, Any]) -> UUID:
        uid = UUID(raw["metadata"]["uid"])
        self.objects.forget(uid)
        self.misses.told_gone(uid)
        self.inbox.put(News(uid, kind, None))
        return uid


def _kept(raw: Mapping[str, Any]) -> bytes:
    """Word all of it but what the cluster says of it, which may be as much again."""
    metadata = {name: value for name, value in raw["metadata"].items() if name != _MANAGED}
    asked = {name: value for name, value in raw.items() if name != _STATUS}
    # Of all that words JSON this alone bears whatever a string or a number may be.
    return json.dumps(asked | {"metadata": metadata}, separators=(",", ":")).encode()


def safely(
    hear: Callable[[Kind, Mapping[str, Any]], UUID | None], kind: Kind, raw: Mapping[str, Any]
) -> UUID | None:
    """Have an object heard, whatever it is."""
    try:
        return hear(kind, raw)
    except Exception:  # noqa: BLE001 - nothing in one object may end the watch or the list of all
        _log.exception("object cannot be heard", kind=kind, metadata=raw.get("metadata"))
        return None


def _is_news(seen: Seen) -> bool:
    """Tell whether the store has to hear of it: not of what had ended when it was first seen."""
    return seen.generation > seen.heard and not (seen.root is None and seen.is_told_over)

"""Which status a person must act on, and how that is said as an Event. Pure.

An Event belongs to a status that begins to say such a thing: where the object has said it before,
whoever led then has told it. So one who leads anew repeats nothing, and nobody has to remember.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core.model.meta import API_VERSION
from workron_controller.objects import Why
from workron_controller.telling import conditions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from workron_controller.objects import Seen

    Call = tuple[str, str, str | None]
    """Type, status and reason of a condition that calls for a person; None: whatever the reason."""

NOT_ENABLED: Final = "NamespaceNotEnabled"
COMPONENT: Final = "workron-controller"
_OF_OBJECTS: Final[Sequence[Call]] = (
    ("Accepted", "False", None),
    ("Reconciling", "True", NOT_ENABLED),
)
_MESSAGE: Final = 1024


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that a notice is about."""

    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Notice:
    """What is to be told, and of what."""

    subject: Subject
    why: Why
    occasion: str
    """Of all notices with the same occasion and reason one is enough."""

    @property
    def name(self) -> str:
        """Name its Event: the same for the same, of which the API server takes but one."""
        # Not of the object: of many that wait for one thing, whichever is told of stands for all.
        told = f"{self.occasion}\n{self.why.reason}".encode()
        return f"workron.{hashlib.sha256(told).hexdigest()[:32]}"

    def manifest(self, now: datetime) -> dict[str, Any]:
        """Give the Event."""
        at, subject = conditions.time(now), self.subject
        about = {"kind": subject.kind, "name": subject.name, "uid": subject.uid}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": subject.namespace},
            "involvedObject": {
                "apiVersion": API_VERSION, "namespace": subject.namespace, **about,
            },
            "type": "Warning",
            "reason": self.why.reason,
            "message": self.why.message[:_MESSAGE],
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }  # fmt: skip


def of_object(seen: Seen, before: Mapping[str, Any], after: Mapping[str, Any]) -> Notice | None:
    """Say what a Job or a Workflow begins to tell that a person must act on, if it does."""
    why = begun(before, after, _OF_OBJECTS)
    if why is None:
        return None
    subject = Subject(str(seen.kind), seen.namespace, seen.name, str(seen.uid))
    # A namespace has no place of its own to say it: one of all the objects that wait there does.
    is_shared = why.reason == NOT_ENABLED
    return Notice(subject, why, seen.namespace if is_shared else f"{seen.uid}/{seen.generation}")


def begun(before: Mapping[str, Any], after: Mapping[str, Any], calls: Sequence[Call]) -> Why | None:
    """Say for what a status calls that it did not call for before; by its reason alone.

    Messages count what changes all the time: pods by their names, workers that are missing.
    """
    was, why = _called_for(before, calls), _called_for(after, calls)
    return None if why is None or (was is not None and was.reason == why.reason) else why


def _called_for(status: Mapping[str, Any], calls: Sequence[Call]) -> Why | None:
    told = status.get("conditions")
    for one in told if isinstance(told, list) else ():
        # Anybody may have written that.
        if isinstance(one, dict) and any(_is_call(one, call) for call in calls):
            return Why(str(one.get("reason")), str(one.get("message") or ""))
    return None


def _is_call(condition: Mapping[str, Any], call: Call) -> bool:
    kind, holds, reason = call
    is_it = (condition.get("type"), condition.get("status")) == (kind, holds)
    return is_it and reason in {None, condition.get("reason")}

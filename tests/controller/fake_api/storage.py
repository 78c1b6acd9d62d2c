"""The objects and their history, which a real server keeps in etcd."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from tests.controller.fake_api.kinds import Json, Kind
from tests.controller.fake_api.notifier import Notifier

Key = tuple[Kind, str, str]
"""Kind, namespace (empty if the kind has none) and name."""


@dataclass(frozen=True)
class Change:
    """One write."""

    version: int
    kind: Kind
    before: Json | None
    after: Json | None


class Storage:
    """All objects, and every change since the last compaction; callers get copies."""

    def __init__(self) -> None:
        self._objects: dict[Key, Json] = {}
        self._history: list[Change] = []
        self.version = 100
        self.oldest = self.version
        """The changes after this version are known."""
        self.notifier = Notifier()

    def find(self, key: Key) -> Json | None:
        return copy.deepcopy(self._objects.get(key))

    def all(self, kind: Kind, namespace: str | None) -> list[Json]:
        """Return the objects of a kind, sorted by namespace and name as a server does."""
        keys = [key for key in self._objects if key[0] == kind and namespace in {None, key[1]}]
        return [copy.deepcopy(self._objects[key]) for key in sorted(keys, key=lambda key: key[1:])]

    def put(self, key: Key, after: Json) -> Json:
        """Store an object as its newest version."""
        before = self._objects.get(key)
        self._objects[key] = self._record(key[0], before, copy.deepcopy(after))
        return copy.deepcopy(self._objects[key])

    def remove(self, key: Key) -> None:
        """Remove an object, which makes a new version too."""
        self._record(key[0], self._objects.pop(key), None)

    def since(self, version: int) -> list[Change]:
        """Return the changes after a version."""
        return [change for change in self._history if change.version > version]

    def compact(self) -> None:
        """Drop the history, so that older lists and watches expire."""
        self._history.clear()
        self.oldest = self.version

    def _record(self, kind: Kind, before: Json | None, after: Json | None) -> Json:
        self.version += 1
        if after is not None:
            after["metadata"]["resourceVersion"] = str(self.version)
        self._history.append(Change(self.version, kind, before, after))
        self.notifier.notify()
        return after or {}

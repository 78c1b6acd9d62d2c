"""Keeps the objects, and what became of them: what a real server leaves to etcd."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from tests.controller.fake_api.kinds import Json, Kind
from tests.controller.fake_api.news import News

Key = tuple[Kind, str, str]
"""Kind, namespace (empty where there is none) and name."""


@dataclass(frozen=True)
class Change:
    """One write."""

    version: int
    kind: Kind
    before: Json | None
    after: Json | None


class Storage:
    """All objects as they are, and every change since the last compaction."""

    def __init__(self) -> None:
        self._objects: dict[Key, Json] = {}
        self._history: list[Change] = []
        self.version = 100
        self.oldest = self.version
        """What came after this one is remembered."""
        self.news = News()

    def find(self, key: Key) -> Json | None:
        """Look one up; what is given out is the caller's own."""
        return copy.deepcopy(self._objects.get(key))

    def all(self, kind: Kind, namespace: str | None) -> list[Json]:
        """List them as a server does, by namespace and name."""
        keys = [key for key in self._objects if key[0] == kind and namespace in {None, key[1]}]
        return [copy.deepcopy(self._objects[key]) for key in sorted(keys, key=lambda key: key[1:])]

    def put(self, key: Key, after: Json) -> Json:
        """Store it as the newest version."""
        before = self._objects.get(key)
        self._objects[key] = self._changed(key[0], before, copy.deepcopy(after))
        return copy.deepcopy(self._objects[key])

    def remove(self, key: Key) -> None:
        """Forget it, which is a version too."""
        self._changed(key[0], self._objects.pop(key), None)

    def since(self, version: int) -> list[Change]:
        """Tell what has changed after that version."""
        return [change for change in self._history if change.version > version]

    def compact(self) -> None:
        """Forget what was before now: who goes on from an older version is told that it is gone."""
        self._history.clear()
        self.oldest = self.version

    def _changed(self, kind: Kind, before: Json | None, after: Json | None) -> Json:
        self.version += 1
        if after is not None:
            after["metadata"]["resourceVersion"] = str(self.version)
        self._history.append(Change(self.version, kind, before, after))
        self.news.ring()
        return after or {}

"""Answers lists, in parts where a limit is set, each part of the same moment as the first."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from tests.controller.fake_api import refused, selectors
from tests.controller.fake_api.kinds import Json, Kind
from tests.controller.fake_api.storage import Storage


@dataclass(frozen=True)
class _Rest:
    """What is left of a list that was begun."""

    version: int
    items: list[Json]


class Lists:
    """All lists that are not read to their ends."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._rests: dict[str, _Rest] = {}

    def answer(self, kind: Kind, namespace: str | None, query: Mapping[str, str]) -> Json:
        """Answer a list, or the next part of one."""
        rest = self._rest(kind, namespace, query)
        limit = int(query.get("limit", 0)) or len(rest.items)
        items, left = rest.items[:limit], rest.items[limit:]
        more = {}
        if left:
            more = {"continue": uuid.uuid4().hex, "remainingItemCount": len(left)}
            self._rests[str(more["continue"])] = _Rest(rest.version, left)
        return {
            "kind": f"{kind.name}List",
            "apiVersion": kind.version,
            "metadata": {"resourceVersion": str(rest.version), **more},
            "items": items,
        }

    def _rest(self, kind: Kind, namespace: str | None, query: Mapping[str, str]) -> _Rest:
        token = query.get("continue")
        if not token:
            chosen = filter(selectors.read(kind, query), self._storage.all(kind, namespace))
            return _Rest(self._storage.version, list(chosen))
        if token not in self._rests:
            raise refused.bad("invalid continue token")
        if self._rests[token].version < self._storage.oldest:
            raise refused.expired("The provided continue parameter is too old.")
        return self._rests[token]

"""Lists, in pages if a limit is set; all pages show the state of the first."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from tests.controller.fake_api import selectors, status_errors
from tests.controller.fake_api.kinds import Json, Kind
from tests.controller.fake_api.storage import Storage


@dataclass(frozen=True)
class _Remainder:
    """The objects of a list that were not sent yet."""

    version: int
    items: list[Json]


class Lists:
    """All lists that were not read to their end."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._by_token: dict[str, _Remainder] = {}

    def page(self, kind: Kind, namespace: str | None, query: Mapping[str, str]) -> Json:
        """Return a list or its next page."""
        remainder = self._remainder(kind, namespace, query)
        limit = int(query.get("limit", 0)) or len(remainder.items)
        items, left = remainder.items[:limit], remainder.items[limit:]
        position: Json = {}
        if left:
            token = uuid.uuid4().hex
            position = {"continue": token, "remainingItemCount": len(left)}
            self._by_token[token] = _Remainder(remainder.version, left)
        return {
            "kind": f"{kind.name}List",
            "apiVersion": kind.version,
            "metadata": {"resourceVersion": str(remainder.version), **position},
            "items": items,
        }

    def _remainder(self, kind: Kind, namespace: str | None, query: Mapping[str, str]) -> _Remainder:
        token = query.get("continue")
        if not token:
            selected = filter(selectors.parse(kind, query), self._storage.all(kind, namespace))
            return _Remainder(self._storage.version, list(selected))
        if token not in self._by_token:
            raise status_errors.bad_request("invalid continue token")
        if self._by_token[token].version < self._storage.oldest:
            raise status_errors.expired("The provided continue parameter is too old.")
        return self._by_token[token]

"""Server-side apply: who applies owns the fields that it names, and drops those named no more."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from http import HTTPStatus

from tests.controller.fake_api import merging, refused, rules
from tests.controller.fake_api.kinds import Json
from tests.controller.fake_api.merging import Path
from tests.controller.fake_api.storage import Key, Storage

_WHOSE = ("apiVersion", "kind", "metadata")
_OWNABLE = ("labels", "annotations", "finalizers", "ownerReferences")
"""Of the metadata."""


@dataclass(frozen=True)
class Applied:
    """What one manager says of an object, or of its status."""

    manager: str
    part: str
    is_forced: bool
    body: Json

    @property
    def fields(self) -> dict[Path, object]:
        """The fields that it says something of."""
        about = self.body.get("metadata") or {}
        ownable = {"metadata": {key: about[key] for key in _OWNABLE if key in about}}
        content = {key: value for key, value in self.body.items() if key not in _WHOSE}
        return dict(merging.leaves(ownable if ownable["metadata"] else {})) | dict(
            merging.leaves(content)
        )


class Owners:
    """Who has said what, by apply; other writes own nothing here."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._owned: dict[str, dict[tuple[str, str], set[Path]]] = {}

    def apply(self, key: Key, applied: Applied) -> Json:
        """Make the object what this manager and all others say."""
        before = self._storage.find(key)
        if before is None:
            after = self._create(key, applied)
        else:
            owned = self._owned.setdefault(before["metadata"]["uid"], {})
            if not applied.is_forced:
                _look_for_quarrel(owned, before, applied)
            after = rules.change(
                self._storage, key, applied.part, lambda body: _reworded(body, owned, applied)
            )
        whose = self._owned.setdefault(after["metadata"]["uid"], {})
        whose[(applied.manager, applied.part)] = set(applied.fields)
        return after

    def _create(self, key: Key, applied: Applied) -> Json:
        kind, namespace, name = key
        if applied.part:
            raise refused.absent(kind, name)
        if "uid" in applied.body.get("metadata", {}):
            raise refused.conflict(kind, name, "uid mismatch: no existing object was found")
        return rules.create(self._storage, kind, namespace, applied.body)


def _reworded(body: Json, owned: dict[tuple[str, str], set[Path]], applied: Applied) -> Json:
    whose = (applied.manager, applied.part)
    others = set().union(*(paths for other, paths in owned.items() if other != whose))
    after = copy.deepcopy(body)
    for path in owned.get(whose, set()) - set(applied.fields) - others:
        merging.remove(after, path)
    for path, value in applied.fields.items():
        merging.place(after, path, value)
    guards = ("uid", "resourceVersion")
    about = applied.body.get("metadata") or {}
    after["metadata"] |= {field: about[field] for field in guards if field in about}
    return after


def _look_for_quarrel(
    owned: dict[tuple[str, str], set[Path]], before: Json, applied: Applied
) -> None:
    for other, paths in owned.items():
        fields = applied.fields.items()
        mine = {path for path, value in fields if merging.at(before, path) != value}
        if other[0] != applied.manager and mine & paths:
            where = ", ".join(".".join(path) for path in sorted(mine & paths))
            raise refused.RefusedError(
                HTTPStatus.CONFLICT, "Conflict", f"Apply failed with conflict at {where}"
            )

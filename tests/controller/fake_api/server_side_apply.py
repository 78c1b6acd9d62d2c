"""Server-side apply: a manager owns the fields that it applies, until it applies without them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from http import HTTPStatus

from tests.controller.fake_api import patches, status_errors, writes
from tests.controller.fake_api.kinds import Json
from tests.controller.fake_api.patches import Path
from tests.controller.fake_api.storage import Key, Storage

_IDENTITY = ("apiVersion", "kind", "metadata")
_OWNABLE_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")

_Owner = tuple[str, str]
"""A manager, and the subresource that it applies."""


@dataclass(frozen=True)
class Applied:
    """The configuration that a manager applies to an object or to its status."""

    manager: str
    subresource: str
    is_forced: bool
    body: Json

    @property
    def owner(self) -> _Owner:
        """The owner of its fields."""
        return self.manager, self.subresource

    @property
    def fields(self) -> dict[Path, object]:
        """The fields that it sets."""
        metadata = self.body.get("metadata") or {}
        ownable = {key: metadata[key] for key in _OWNABLE_METADATA if key in metadata}
        content = {key: value for key, value in self.body.items() if key not in _IDENTITY}
        return dict(patches.leaves(({"metadata": ownable} if ownable else {}) | content))


class FieldOwners:
    """The owners of all fields that were applied; other writes own nothing here."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._owned: dict[str, dict[_Owner, set[Path]]] = {}

    def apply(self, key: Key, applied: Applied) -> Json:
        """Set the fields of this manager, and remove those that no manager applies anymore."""
        before = self._storage.find(key)
        if before is None:
            after = self._create(key, applied)
        else:
            owned = self._owned.setdefault(before["metadata"]["uid"], {})
            if not applied.is_forced:
                _check_conflicts(owned, before, applied)
            after = writes.change(
                self._storage,
                key,
                applied.subresource,
                lambda body: _with_fields(body, owned, applied),
            )
        owned = self._owned.setdefault(after["metadata"]["uid"], {})
        owned[applied.owner] = set(applied.fields)
        return after

    def _create(self, key: Key, applied: Applied) -> Json:
        kind, namespace, name = key
        if applied.subresource:
            raise status_errors.not_found(kind, name)
        if "uid" in applied.body.get("metadata", {}):
            cause = "uid mismatch: no existing object was found"
            raise status_errors.conflict(kind, name, cause)
        return writes.create(self._storage, kind, namespace, applied.body)


def _with_fields(body: Json, owned: dict[_Owner, set[Path]], applied: Applied) -> Json:
    of_others = set().union(*(paths for owner, paths in owned.items() if owner != applied.owner))
    after = copy.deepcopy(body)
    for path in owned.get(applied.owner, set()) - set(applied.fields) - of_others:
        patches.remove_field(after, path)
    for path, value in applied.fields.items():
        patches.set_field(after, path, value)
    metadata = applied.body.get("metadata") or {}
    preconditions = {
        name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata
    }
    after["metadata"] |= preconditions
    return after


def _check_conflicts(owned: dict[_Owner, set[Path]], before: Json, applied: Applied) -> None:
    fields = applied.fields.items()
    changed = {path for path, value in fields if patches.get_field(before, path) != value}
    for (manager, _), paths in owned.items():
        if manager != applied.manager and changed & paths:
            names = ", ".join(".".join(path) for path in sorted(changed & paths))
            message = f"Apply failed with conflict at {names}"
            raise status_errors.StatusError(HTTPStatus.CONFLICT, "Conflict", message)

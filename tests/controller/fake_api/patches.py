"""The three formats of a change: merge patch, JSON patch, and the fields of an apply. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.controller.fake_api import status_errors
from tests.controller.fake_api.kinds import Json

Path = tuple[str, ...]


def merge(before: Any, patch: Any) -> Any:
    """Apply a merge patch, in which null removes a field."""
    if not isinstance(patch, dict):
        return patch
    after = copy.deepcopy(before) if isinstance(before, dict) else {}
    for key, value in patch.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = merge(after.get(key), value)
    return after


def apply_json_patch(before: Json, patch: list[Json]) -> Json:
    """Apply the operations `test`, `add`, `replace` and `remove`, in objects only."""
    after = copy.deepcopy(before)
    for operation in patch:
        segments = operation["path"].split("/")
        path = tuple(segment.replace("~1", "/").replace("~0", "~") for segment in segments[1:])
        _apply_operation(after, operation["op"], path, operation.get("value"))
    return after


def _apply_operation(body: Json, verb: str, path: Path, value: Any) -> None:
    parent = _parent(body, path)
    exists = parent is not None and path[-1] in parent
    if parent is None or (verb != "add" and not exists):
        raise status_errors.failed_test()
    if verb == "test" and parent[path[-1]] != value:
        raise status_errors.failed_test()
    if verb in {"add", "replace"}:
        parent[path[-1]] = value
    if verb == "remove":
        del parent[path[-1]]


def leaves(body: Json, prefix: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the value of each field; a list counts as one field."""
    for key, value in body.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*prefix, key))
        else:
            yield (*prefix, key), value


def get_field(body: Json, path: Path) -> Any:
    """Return the value of a field; None if it does not exist."""
    parent = _parent(body, path)
    return None if parent is None else parent.get(path[-1])


def set_field(body: Json, path: Path, value: Any) -> None:
    """Set a field, and create the objects around it."""
    for segment in path[:-1]:
        if not isinstance(body.get(segment), dict):
            body[segment] = {}
        body = body[segment]
    body[path[-1]] = value


def remove_field(body: Json, path: Path) -> None:
    """Remove a field, and the objects around it that become empty."""
    parent = _parent(body, path)
    if parent is not None:
        parent.pop(path[-1], None)
        if not parent and len(path) > 1:
            remove_field(body, path[:-1])


def _parent(body: Json, path: Path) -> Json | None:
    parent: Any = body
    for segment in path[:-1]:
        parent = parent.get(segment) if isinstance(parent, dict) else None
    return parent if isinstance(parent, dict) else None

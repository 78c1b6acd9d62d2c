"""The three ways to word a change: a merge patch, a JSON patch, and an apply. All pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.controller.fake_api import refused
from tests.controller.fake_api.kinds import Json

Path = tuple[str, ...]


def merge(before: Any, patch: Any) -> Any:
    """Change what the patch names; null removes."""
    if not isinstance(patch, dict):
        return patch
    after = copy.deepcopy(before) if isinstance(before, dict) else {}
    for key, value in patch.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = merge(after.get(key), value)
    return after


def steps(before: Json, patch: list[Json]) -> Json:
    """Do a JSON patch: `test`, `add`, `replace` and `remove`, into objects only."""
    after = copy.deepcopy(before)
    for step in patch:
        path = tuple(part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/"))
        _step(after, step["op"], path[1:], step.get("value"))
    return after


def _step(body: Json, verb: str, path: Path, value: Any) -> None:
    inner = _inner(body, path[:-1])
    is_there = inner is not None and path[-1] in inner
    if inner is None or (verb != "add" and not is_there):
        raise refused.failed_test()
    if verb == "test" and inner[path[-1]] != value:
        raise refused.failed_test()
    if verb in {"add", "replace"}:
        inner[path[-1]] = value
    if verb == "remove":
        del inner[path[-1]]


def leaves(body: Json, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Give each field of an applied object; a list counts as one."""
    for key, value in body.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*at, key))
        else:
            yield (*at, key), value


def at(body: Json, path: Path) -> Any:
    """Give what is there, or nothing."""
    inner = _inner(body, path[:-1])
    return None if inner is None else inner.get(path[-1])


def place(body: Json, path: Path, value: Any) -> None:
    """Set one field, and make what it is in."""
    for step in path[:-1]:
        if not isinstance(body.get(step), dict):
            body[step] = {}
        body = body[step]
    body[path[-1]] = value


def remove(body: Json, path: Path) -> None:
    """Remove one field, and what it leaves empty."""
    inner = _inner(body, path[:-1])
    if inner is not None:
        inner.pop(path[-1], None)
        if not inner and len(path) > 1:
            remove(body, path[:-1])


def _inner(body: Json, path: Path) -> Json | None:
    inner: Any = body
    for step in path:
        inner = inner.get(step) if isinstance(inner, dict) else None
    return inner if isinstance(inner, dict) else None

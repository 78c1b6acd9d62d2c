"""Which objects a list or watch is about: label and field selectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.controller.fake_api import refused
from tests.controller.fake_api.kinds import Json, Kind

Chooses = Callable[[Json], bool]

_COMMA = re.compile(r",(?![^(]*\))")
_EQUAL = re.compile(r"([^!=\s]+)\s*(==|=|!=)\s*([^!=\s]*)")
_AMONG = re.compile(r"(\S+)\s+(in|notin)\s+\(([^)]*)\)")
_PRESENT = re.compile(r"(!?)([\w./-]+)")


def read(kind: Kind, query: Mapping[str, str]) -> Chooses:
    """Read both selectors of a request."""
    labels = [_label(part) for part in _split(query.get("labelSelector", ""))]
    fields = [_field(kind, part) for part in _split(query.get("fieldSelector", ""))]
    return lambda body: all(
        [
            *(one(body["metadata"].get("labels") or {}) for one in labels),
            *(one(body) for one in fields),
        ]
    )


def _split(text: str) -> list[str]:
    return [part.strip() for part in _COMMA.split(text) if part.strip()]


def _label(part: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _EQUAL.fullmatch(part):
        key, sign, value = found.groups()
        return lambda labels: (labels.get(key) == value) is (sign != "!=")
    if found := _AMONG.fullmatch(part):
        key, word, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        return lambda labels: (labels.get(key) in values) is (word == "in")
    if found := _PRESENT.fullmatch(part):
        sign, key = found.groups()
        return lambda labels: (key in labels) is not bool(sign)
    raise refused.bad(f"unable to parse requirement: {part!r}")


def _field(kind: Kind, part: str) -> Chooses:
    found = _EQUAL.fullmatch(part)
    if found is None:
        raise refused.bad(f"invalid field selector: {part!r}")
    path, sign, value = found.groups()
    if path not in {"metadata.name", "metadata.namespace", *kind.fields}:
        raise refused.bad(f"field label not supported: {path}")
    return lambda body: (_at(body, path) == value) is (sign != "!=")


def _at(body: Json, path: str) -> str:
    found: Any = body
    for step in path.split("."):
        found = found.get(step, {}) if isinstance(found, dict) else {}
    return "" if found in ({}, None) else str(found)

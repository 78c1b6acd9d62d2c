"""Label and field selectors of lists and watches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.controller.fake_api import status_errors
from tests.controller.fake_api.kinds import Json, Kind

Selector = Callable[[Json], bool]

_COMMA = re.compile(r",(?![^(]*\))")
_EQUAL = re.compile(r"([^!=\s]+)\s*(==|=|!=)\s*([^!=\s]*)")
_SET_BASED = re.compile(r"(\S+)\s+(in|notin)\s+\(([^)]*)\)")
_EXISTS = re.compile(r"(!?)([\w./-]+)")


def parse(kind: Kind, query: Mapping[str, str]) -> Selector:
    """Parse both selectors of a request."""
    labels = [_label(requirement) for requirement in _split(query.get("labelSelector", ""))]
    fields = [_field(kind, requirement) for requirement in _split(query.get("fieldSelector", ""))]
    return lambda body: all(
        [
            *(one(body["metadata"].get("labels") or {}) for one in labels),
            *(one(body) for one in fields),
        ]
    )


def _split(text: str) -> list[str]:
    return [requirement.strip() for requirement in _COMMA.split(text) if requirement.strip()]


def _label(requirement: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _EQUAL.fullmatch(requirement):
        key, operator, value = found.groups()
        return lambda labels: (labels.get(key) == value) is (operator != "!=")
    if found := _SET_BASED.fullmatch(requirement):
        key, operator, value_list = found.groups()
        values = {value.strip() for value in value_list.split(",")}
        return lambda labels: (labels.get(key) in values) is (operator == "in")
    if found := _EXISTS.fullmatch(requirement):
        operator, key = found.groups()
        return lambda labels: (key in labels) is not bool(operator)
    raise status_errors.bad_request(f"unable to parse requirement: {requirement!r}")


def _field(kind: Kind, requirement: str) -> Selector:
    found = _EQUAL.fullmatch(requirement)
    if found is None:
        raise status_errors.bad_request(f"invalid field selector: {requirement!r}")
    path, operator, value = found.groups()
    if path not in {"metadata.name", "metadata.namespace", *kind.fields}:
        raise status_errors.bad_request(f"field label not supported: {path}")
    return lambda body: (_field_value(body, path) == value) is (operator != "!=")


def _field_value(body: Json, path: str) -> str:
    found: Any = body
    for segment in path.split("."):
        found = found.get(segment, {}) if isinstance(found, dict) else {}
    return "" if found in ({}, None) else str(found)

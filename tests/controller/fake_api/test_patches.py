"""Patches of the fake API server."""

from typing import Any

import pytest

from tests.controller.fake_api import patches
from tests.controller.fake_api.kinds import Json
from tests.controller.fake_api.status_errors import StatusError


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({}, {"a": None}, {}),
    ],
)
def test_merge_patch_changes_the_fields_that_it_has(before: Any, patch: Any, after: Any) -> None:
    assert patches.merge(before, patch) == after


def test_operations_of_a_json_patch_are_applied_in_order() -> None:
    patch: list[Json] = [
        {"op": "test", "path": "/a/b", "value": 1},
        {"op": "replace", "path": "/a/b", "value": 2},
        {"op": "add", "path": "/c~1d", "value": 3},
        {"op": "remove", "path": "/e"},
    ]
    assert patches.apply_json_patch({"a": {"b": 1}, "e": 4}, patch) == {"a": {"b": 2}, "c/d": 3}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/b", "value": 2},
        {"op": "replace", "path": "/b", "value": 2},
        {"op": "remove", "path": "/b"},
        {"op": "add", "path": "/b/c", "value": 2},
    ],
)
def test_json_patch_is_refused_when_an_operation_does_not_apply(operation: Any) -> None:
    with pytest.raises(StatusError):
        patches.apply_json_patch({"a": 1}, [operation])

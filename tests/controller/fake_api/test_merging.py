"""Patches, as the fake does them."""

from typing import Any

import pytest

from tests.controller.fake_api import merging
from tests.controller.fake_api.kinds import Json
from tests.controller.fake_api.refused import RefusedError


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
def test_merge_patch_changes_what_it_names(before: Any, patch: Any, after: Any) -> None:
    assert merging.merge(before, patch) == after


def test_json_patch_does_its_steps_in_order() -> None:
    patch: list[Json] = [
        {"op": "test", "path": "/a/b", "value": 1},
        {"op": "replace", "path": "/a/b", "value": 2},
        {"op": "add", "path": "/c~1d", "value": 3},
        {"op": "remove", "path": "/e"},
    ]
    assert merging.steps({"a": {"b": 1}, "e": 4}, patch) == {"a": {"b": 2}, "c/d": 3}


@pytest.mark.parametrize(
    "step",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/b", "value": 2},
        {"op": "replace", "path": "/b", "value": 2},
        {"op": "remove", "path": "/b"},
        {"op": "add", "path": "/b/c", "value": 2},
    ],
)
def test_json_patch_that_does_not_fit_is_refused(step: Any) -> None:
    with pytest.raises(RefusedError):
        merging.steps({"a": 1}, [step])

"""The controller asks the API server whether the namespace of a deleted object is deleted, too."""

import random
from collections.abc import Collection
from typing import Any, cast

import pytest

from tests.controller.manual_clock import ManualClock
from workron_controller.jobs.custom_objects import CustomObjects
from workron_controller.kube import errors
from workron_controller.kube.client import ApiClient, RetryingCalls
from workron_controller.kube.resources import ResourcePath


class FakeNamespaces:
    """Answers each request with one namespace or one error."""

    def __init__(self, answer: dict[str, Any] | errors.ApiError) -> None:
        self.answer = answer
        self.paths: list[str] = []

    async def get(self, path: ResourcePath, /) -> dict[str, Any]:
        self.paths.append(path.path)
        if isinstance(self.answer, errors.ApiError):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "watched", "is_terminating"),
    [
        ({"metadata": {"name": "team"}}, [], False),
        ({"metadata": {"name": "team", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, [], True),
        (errors.ObjectNotFoundError("gone"), [], True),
        # Its role binding was deleted with it; where all namespaces are watched, there is none.
        (errors.ForbiddenError("no"), ["team"], True),
        (errors.ForbiddenError("no"), [], False),
        (errors.UnreachableError("later"), ["team"], False),
    ],
    ids=["lives", "terminates", "gone", "not-bound", "forbidden", "unreachable"],
)
async def test_namespace_terminates(
    answer: dict[str, Any] | errors.ApiError, watched: Collection[str], *, is_terminating: bool
) -> None:
    api = FakeNamespaces(answer)
    retrying = RetryingCalls(ManualClock(), random.Random(1))
    objects = CustomObjects(cast("ApiClient", api), retrying, watched)
    assert await objects.is_terminating("team") is is_terminating
    assert api.paths == ["/api/v1/namespaces/team"]

"""Edits: each field of a Job and of a Workflow added, removed and changed.

All but a few are refused. Generated, since hundreds of pairs of files would say the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from workron_controller.crds import rules

_TWO_VALUES: Final[Mapping[str, Mapping[str, tuple[Any, Any]]]] = {
    "Job": {
        "command": ("x", "y"),
        "argv": (["x"], ["x", "y"]),
        "env": ([{"name": "A", "value": "b"}], [{"name": "A", "value": "c"}]),
        "shell": ("bash", ["bash", "-e", "-c"]),
        "workdir": ("/a", "/b"),
        "pool": ("fast", "slow"),
        "maxAttempts": (1, 2),
        "maxWorkerLosses": (1, 2),
        "backoff": ({"initial": "2s"}, {"initial": "3s"}),
        "retryOn": ([1], [1, 2]),
        "failOn": ([1], [2]),
        "timeout": ("1s", "2s"),
        "deadline": ("1s", "2s"),
        "overlap": ("Forbid", "Allow"),
        "onLeaseLost": ("continue", "kill"),
        "outputLimitBytes": (0, 1),
        "outputStreamBytes": (1, 2),
        "dependsOn": ([{"name": "b"}], [{"name": "b", "when": "Failed"}]),
        "startAfter": ("2026-01-31T08:00:00Z", "2026-01-31T08:00:01Z"),
        "priority": (1, 2),
        "suspend": (True, False),
        "cancel": (False, True),
        "ttlSecondsAfterFinished": (0, 1),
    },
    "Workflow": {
        "finally": ([{"name": "z", "command": "x"}], [{"name": "z", "command": "y"}]),
        "env": ([{"name": "A", "value": "b"}], [{"name": "A", "value": "c"}]),
        "defaults": ({"pool": "fast"}, {"pool": "slow"}),
        "deadline": ("1s", "2s"),
        "failFast": (True, False),
        "priority": (1, 2),
        "suspend": (True, False),
        "cancel": (False, True),
        "forceCancel": (False, True),
        "ttlSecondsAfterFinished": (0, 1),
    },
}
_TASKS: Final[Mapping[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "of another command": ({"command": "x"}, {"command": "y"}),
    "with another item": ({"items": ["a", 1]}, {"items": ["a", "1"]}),
    "with items in another order": ({"items": [1, 2]}, {"items": [2, 1]}),
    "with a field more": ({}, {"maxAttempts": 3}),
    "with an item that is true": ({"items": [1]}, {"items": [True]}),
}


UNRULED: Final = frozenset({"shell"})
"""Fields of several types, which no rule can name; the controller ignores an edit of them."""


@dataclass(frozen=True)
class Update:
    """An object before and after; `refused` names the field that rejects the change."""

    name: str
    before: dict[str, Any]
    after: dict[str, Any]
    refused: str | None


def fields(kind: str) -> set[str]:
    """Return the fields that are edited."""
    return {*_TWO_VALUES[kind], *({"tasks"} if kind == "Workflow" else ())}


def updates() -> Iterator[Update]:
    """Yield each edit, with a name that is valid for an object."""
    for kind in _TWO_VALUES:
        yield from _of_fields(kind)
        yield from _of_cancel(kind, "cancel")
    yield from _of_cancel("Workflow", "forceCancel")
    yield from _of_one_time()
    yield from _of_tasks()


def _of_fields(kind: str) -> Iterator[Update]:
    for field, values in _TWO_VALUES[kind].items():
        refused = None if field in {*rules.EDITABLE, *UNRULED} else field
        without = _spec(kind, field, None)
        one, other = (_spec(kind, field, value) for value in values)
        name = f"{kind}-{field}".lower()
        yield _update(f"{name}-added", kind, without, one, refused)
        yield _update(f"{name}-taken-away", kind, one, without, refused)
        yield _update(f"{name}-swapped", kind, one, other, refused)


def _of_cancel(kind: str, field: str) -> Iterator[Update]:
    cancelled = _spec(kind, field, True)
    for word, after in {"denied": False, "forgotten": None}.items():
        name = f"{kind}-{field}-{word}".lower()
        yield _update(name, kind, cancelled, _spec(kind, field, after), field)


def _of_one_time() -> Iterator[Update]:
    times = ("2026-01-31T08:00:00Z", "2026-01-31T09:00:00.0+01:00")
    early, same = (_spec("Job", "startAfter", time) for time in times)
    yield _update("job-startafter-in-another-zone", "Job", early, same, None)


def _of_tasks() -> Iterator[Update]:
    for words, (one, other) in _TASKS.items():
        name = f"workflow-tasks-{words.replace(' ', '-')}"
        yield _update(name, "Workflow", _task(one), _task(other), "tasks")
    two = {"tasks": [*_task({})["tasks"], *_task({"name": "b"})["tasks"]]}
    yield _update("workflow-task-added", "Workflow", _task({}), two, "tasks")
    yield _update("workflow-task-taken-away", "Workflow", two, _task({}), "tasks")


def _spec(kind: str, field: str, value: Any) -> dict[str, Any]:
    """Return a spec with the field, or without it if the value is None."""
    if kind == "Workflow":
        least = _task({})
    elif field == "argv" and value is not None:
        least = {}
    elif field == "command" and value is None:
        least = {"argv": ["x"]}
    else:
        least = {"command": "x"}
    return least | ({} if value is None else {field: value})


def _task(fields: dict[str, Any]) -> dict[str, Any]:
    return {"tasks": [{"name": "a", "command": "x"} | fields]}


def _update(
    name: str, kind: str, before: dict[str, Any], after: dict[str, Any], refused: str | None
) -> Update:
    return Update(name, _object(name, kind, before), _object(name, kind, after), refused)


def _object(name: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    head = {"apiVersion": "workron.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}
    return head | {"spec": spec}

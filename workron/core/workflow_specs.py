"""Encodes the specs of a workflow as JSON, and its digest from the same texts.

Each task has a spec of its own, which a worker reads with a claim. The spec of the workflow has all
fields of its tasks as they were written.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from workron.core import payloads, trace_context
from workron.core.model.workflow import WorkflowSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workron.core.model.job import JobSpec
    from workron.core.model.workflow import Task


EDITABLE: Final = {"suspend", "cancel", "force_cancel", "priority", "ttl_seconds_after_finished"}
"""Fields that can change after the submission, and are not part of the digest."""
_ROW_FIELDS: Final = ("name", "dependsOn", "items")
"""Fields of a task that are stored as rows, and need not be sent with every claim."""
_NO_TASKS: Final = '"tasks":[]'
_SLICE: Final = 200
"""Dumping a slice takes half the time of dumping its tasks one by one."""


class WorkflowSpecs:
    """The specs of one workflow; `tasks` are all its tasks as they are run."""

    def __init__(self, spec: WorkflowSpec, tasks: tuple[Task, ...]) -> None:
        self._spec = spec
        self._written = spec.all_tasks
        self._tasks = tasks
        # With `defaults`, a field that is written with its usual default means something.
        self._has_defaults = bool(spec.defaults.model_fields_set)
        self._digest: str | None = None

    def encode(self, traceparent: str | None) -> Iterator[tuple[int, str]]:
        """Encode the specs of the tasks, numbered from 1 in their order, and the workflow's own.

        The workflow's own has number 0.
        """
        texts: list[str] = []
        for first in range(0, len(self._written), _SLICE):
            part = slice(first, first + _SLICE)
            bodies = _dump(self._written[part], with_defaults=self._has_defaults)
            rows = payloads.models_to_json(_take_row_fields(bodies))
            commands = payloads.models_to_json(bodies)
            texts += [f"{row[:-1]},{text[1:]}" for row, text in zip(rows, commands, strict=True)]
            if self._tasks is not self._written:
                bodies = _dump(self._tasks[part])
                _take_row_fields(bodies)
                commands = payloads.models_to_json(bodies)
            if traceparent:
                traced = [trace_context.with_traceparent(body, traceparent) for body in bodies]
                commands = payloads.models_to_json(traced)
            yield from enumerate(commands, first + 1)
        yield 0, self._encode_own(texts)

    def _encode_own(self, texts: Sequence[str]) -> str:
        """Encode the workflow's own spec from the texts of its tasks, and make the digest."""
        count = len(self._spec.tasks)
        tasks = f'"tasks":[{",".join(texts[:count])}]'
        if texts[count:]:
            tasks += f',"finally":[{",".join(texts[count:])}]'
        bare = self._spec.model_copy(update={"tasks": (), "finally_": ()})
        self._digest = _hash(payloads.to_json(content(bare, exclude=EDITABLE)) + tasks)
        before, _, after = payloads.to_json(content(bare)).partition(_NO_TASKS)
        return f"{before}{tasks}{after}"

    def digest(self) -> str:
        """Return the digest; encodes the specs unless that was done before."""
        if self._digest is None:
            for _ in self.encode(None):
                pass
        assert self._digest is not None
        return self._digest


def job_digest(spec: JobSpec) -> str:
    """Return the digest of a Job."""
    return _hash(payloads.to_json(content(spec, exclude=EDITABLE)))


def content(
    spec: JobSpec | WorkflowSpec, exclude: set[str] | None = None, *, with_defaults: bool = False
) -> dict[str, Any]:
    """Return the fields of a spec that are not defaults.

    So a manifest that writes a default is the same content. Fields that are not set are defaults
    and need no comparison. The models decide the order of the fields.
    """
    return spec.model_dump(
        mode="json",
        by_alias=True,
        exclude_unset=True,
        exclude_defaults=not with_defaults,
        exclude=exclude,
    )


def _dump(tasks: tuple[Task, ...], *, with_defaults: bool = False) -> list[dict[str, Any]]:
    spec = WorkflowSpec.model_construct(tasks=tasks)
    dumped: list[dict[str, Any]] = content(spec, with_defaults=with_defaults)["tasks"]
    return dumped


def _take_row_fields(bodies: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Remove the fields that are stored as rows, and return them."""
    return [{key: body.pop(key) for key in _ROW_FIELDS if key in body} for body in bodies]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

"""The specs of a workflow and of its tasks, as the JSON that is stored.

Made by `core.expand`. They are worded when they are stored and not before: the models are there
anyhow, each takes a good part of what a submission costs, and a store is busy meanwhile with the
jobs. And so it is done a few tasks at a time.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core import json_text, trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from workron.core.model.workflow import WorkflowSpec

_ELSEWHERE: Final = frozenset({"name", "dependsOn", "items"})
"""Fields of a task that are kept as rows, and so need not travel with every claim."""
_NO_TASKS: Final = '"tasks":[]'


@dataclass(frozen=True, slots=True)
class TaskSpecs:
    """The workflow's own is number 0; those of its tasks follow as they are written."""

    spec: WorkflowSpec
    parent: str | None = None
    """The trace that tasks carry which name none themselves."""

    def within(self, parent: str) -> TaskSpecs:
        """Give the same, but the tasks carry this trace where they name none themselves."""
        return dataclasses.replace(self, parent=parent)

    def worded(self) -> Iterator[tuple[int, str]]:
        """Give the number of each and its JSON: the workflow's last, which has all the others."""
        worded: list[str] = []
        for some in self.spec.slices():
            written = some.as_manifest()["tasks"]
            first = len(worded) + 1
            worded += json_text.models_worded(written)
            yield from enumerate(json_text.models_worded(self._bodies(written)), first)
        yield 0, self._whole(worded)

    def _bodies(self, written: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        bodies: list[Mapping[str, Any]] = [
            {name: value for name, value in task.items() if name not in _ELSEWHERE}
            for task in written
        ]
        return [trace.carried(body, self.parent) for body in bodies] if self.parent else bodies

    def _whole(self, worded: Iterable[str]) -> str:
        bare = self.spec.model_copy(update={"tasks": ()})
        before, _, after = json_text.worded(bare.as_manifest()).partition(_NO_TASKS)
        return f'{before}"tasks":[{",".join(worded)}]{after}'

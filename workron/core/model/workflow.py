"""The kind Workflow: a named DAG of tasks, submitted whole.

Whether the names in `dependsOn` exist, form no cycle and pair arrays of one length is for
`core.graph` to say.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema, model_validator

from workron.core import formats
from workron.core.model import base
from workron.core.model.base import Label, Priority, Seconds
from workron.core.model.job import CommandSpec, When
from workron.core.model.meta import Resource
from workron.core.model.status import FromSystem, WorkflowStatus
from workron.core.verdict import Condition

if TYPE_CHECKING:
    from collections.abc import Iterator


MAX_TASKS: Final = 10_000
MAX_ELEMENTS: Final = 100_000
MAX_JOBS: Final = 200_000
"""Of one workflow, elements of arrays counted one by one."""

_SLICE: Final = 200
_ITEM_BYTES: Final = 128_000
_ITEM_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string", "maxLength": _ITEM_BYTES},
        *({"type": t} for t in ("integer", "number", "boolean")),
    ]
}


def _scalar(value: object) -> str | int | float | bool:
    if isinstance(value, str):
        problem = formats.invalid_character(value)
        if not problem and len(value.encode()) > _ITEM_BYTES:
            problem = f"is longer than {_ITEM_BYTES:,} bytes"
        if problem:
            raise base.invalid(problem)
        return value
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise base.invalid("an item is a text, a number, true or false")


Item = Annotated[str | int | float | bool, PlainValidator(_scalar), WithJsonSchema(_ITEM_SCHEMA)]


class TaskDependency(base.Record):
    """Another task of the same workflow, whose end is waited for."""

    name: Label = Field(description="Name of the task.")
    when: When = Field(
        Condition.SUCCEEDED, description="The end that lets this task go; Finished is any."
    )
    each: bool = Field(
        default=False,
        description="Both are arrays of one length: each element waits for its counterpart.",
    )


class Task(CommandSpec):
    """One command of a workflow, or an array of them."""

    name: Label = Field(description="Name, unique in the workflow.")
    depends_on: Annotated[tuple[TaskDependency, ...], base.LAX] = Field(
        (), max_length=MAX_TASKS, description="Tasks that it waits for."
    )
    count: int | None = Field(
        None,
        ge=1,
        le=MAX_ELEMENTS,
        description="Makes it an array of so many jobs; $WORKRON_INDEX counts them from 0.",
    )
    items: Annotated[tuple[Item, ...], base.LAX] | None = Field(
        None,
        min_length=1,
        max_length=MAX_ELEMENTS,
        description="Makes it an array of one job an item, which is in $WORKRON_ITEM.",
    )

    @property
    def is_array(self) -> bool:
        """Whether it is an array, be it of one element."""
        return self.count is not None or self.items is not None

    @property
    def size(self) -> int:
        """Count the jobs that it stands for."""
        return self.count or len(self.items or "1")

    @model_validator(mode="after")
    def _is_one_array(self) -> Self:
        if self.count is not None and self.items is not None:
            raise base.invalid("has both count and items; an array has one of them")
        return self


def _within_budget(tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    jobs = sum(task.size for task in tasks)
    if jobs > MAX_JOBS:
        raise base.invalid(
            f"stand for {jobs:,} jobs, each element of an array counted; "
            f"one workflow has at most {MAX_JOBS:,}: split it"
        )
    return tasks


class WorkflowSpec(base.Record):
    """The tasks, and how all of them are run."""

    tasks: Annotated[
        tuple[Task, ...],
        base.LAX,
        Field(min_length=1, max_length=MAX_TASKS),
        AfterValidator(_within_budget),
    ] = Field(description="The tasks, in any order.")
    priority: Priority = Field(0, description="The greater goes first, within a pool.")
    suspend: bool = Field(default=False, description="While true no further task is started.")
    cancel: bool = Field(default=False, description="True ends all of it, for good.")
    ttl_seconds_after_finished: Seconds | None = Field(
        None, description="The object is deleted this long after its end; default: never."
    )

    def slices(self) -> Iterator[WorkflowSpec]:
        """Give the tasks and nothing else, some at a time.

        So they are dumped in half of what it takes one by one, and not all of them without a pause.
        """
        for first in range(0, len(self.tasks), _SLICE):
            yield WorkflowSpec.model_construct(tasks=self.tasks[first : first + _SLICE])


class Workflow(Resource):
    """A named DAG of jobs, submitted whole."""

    kind: Literal["Workflow"] = Field("Workflow", description="Always Workflow.")
    spec: WorkflowSpec = Field(description="What to run.")
    status: Annotated[WorkflowStatus | None, FromSystem] = Field(
        None, description="Where it stands; written by the system."
    )

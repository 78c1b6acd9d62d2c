"""The kind Workflow: a DAG of tasks that is submitted as a whole.

Checks of the whole graph are in `workron.core.graph` and `workron.core.planner`: unknown upstreams,
cycles, two tasks of one name, arrays of different lengths under `each`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema, model_validator

from workron.core.formats import TextFormat
from workron.core.jobspec import MAX_ENV_VARS
from workron.core.model import base
from workron.core.model.base import (
    Attempts,
    Label,
    ObjectName,
    PoolName,
    Priority,
    Seconds,
    Timestamp,
)
from workron.core.model.job import Backoff, CommandSpec, EnvVar, When
from workron.core.model.meta import Resource
from workron.core.model.status import FromSystem, WorkflowStatus
from workron.core.plan import Kind
from workron.core.verdict import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_TASKS: Final = 10_000
MAX_ELEMENTS: Final = 100_000
MAX_JOBS: Final = 200_000
"""Jobs of one workflow; each element of an array counts as one."""

MAX_FINALLY: Final = 100
"""Tasks of `finally`."""
MAX_FINALLY_JOBS: Final = 1_000
"""Jobs of `finally`: all of them start at the end of one group."""

_ITEM_BYTES: Final = 128_000
_ITEM_TEXT: Final = base.Format(TextFormat("an item", _ITEM_BYTES))
_ITEM_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string", "maxLength": _ITEM_BYTES},
        *({"type": t} for t in ("integer", "number", "boolean")),
    ]
}


def _scalar(value: object) -> str | int | float | bool:
    if isinstance(value, str):
        return _ITEM_TEXT.check(value)
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError("an item must be a text, a number, true or false")


Item = Annotated[str | int | float | bool, PlainValidator(_scalar), WithJsonSchema(_ITEM_SCHEMA)]


_PERCENTAGE: Final = r"(100|[1-9]?[0-9])%"


def _count_or_percentage(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ELEMENTS:
        return value
    if isinstance(value, str) and re.fullmatch(_PERCENTAGE, value):
        return value
    raise ValueError(
        f"must be a number from 0 to {MAX_ELEMENTS:,}, or a percentage from 0% to 100%"
    )


MaxFailures = Annotated[
    int | str,
    PlainValidator(_count_or_percentage),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "minimum": 0,
            "maximum": MAX_ELEMENTS,
            "pattern": f"^{_PERCENTAGE}$",
            "maxLength": 4,
        }
    ),
]


class TaskDependency(base.Record):
    """A task of the same workflow, or another Job or Workflow, that must end first."""

    name: ObjectName = Field(description="Name of the task, Job or Workflow.")
    kind: Literal[Kind.JOB, Kind.WORKFLOW] | None = Field(
        None,
        description="Kind of an object outside of this workflow: Job or Workflow. It need not exist"
        " yet. Default: a task of this workflow.",
    )
    when: When = Field(
        Condition.SUCCEEDED, description="The end of it that is required. Finished accepts any end."
    )
    each: bool = Field(
        default=False,
        description="Pair two arrays of one length: each element waits for the one of its index.",
    )


class Task(CommandSpec):
    """A command of a workflow, or an array of jobs that run it."""

    name: Label = Field(description="Name of the task, unique in the workflow.")
    depends_on: base.ListOf[TaskDependency] = Field(
        (), max_length=MAX_TASKS, description="Tasks, Jobs and Workflows that must end first."
    )
    start_after: Timestamp | None = Field(None, description="Earliest time to start.")
    count: int | None = Field(
        None,
        ge=1,
        le=MAX_ELEMENTS,
        description="Makes the task an array of this many jobs. Each finds its index, from 0, in"
        " $WORKRON_INDEX.",
    )
    items: base.ListOf[Item] | None = Field(
        None,
        min_length=1,
        max_length=MAX_ELEMENTS,
        description="Makes the task an array with one job for each item. Each finds its item in"
        " $WORKRON_ITEM.",
    )
    allow_failure: bool = Field(
        default=False,
        description="If true, the workflow can succeed although this task fails. Tasks that depend"
        " on its success are skipped.",
    )
    max_failures: MaxFailures | None = Field(
        None,
        description='How many jobs of the array may fail: a number, or a percentage such as "5%",'
        " rounded down. The array succeeds nevertheless.",
    )

    @property
    def allowed_failures(self) -> int | None:
        """Return how many of its jobs may fail."""
        if isinstance(self.max_failures, str):
            return self.size * int(self.max_failures[:-1]) // 100
        return self.max_failures

    @property
    def is_array(self) -> bool:
        """Return whether the task is an array, even one of a single element."""
        return self.count is not None or self.items is not None

    @property
    def size(self) -> int:
        """Return the number of its jobs."""
        return self.count or len(self.items or "1")

    @model_validator(mode="after")
    def _is_one_array(self) -> Self:
        if self.count is not None and self.items is not None:
            raise ValueError("has both count and items; set one of them")
        if self.max_failures is not None and not self.is_array:
            raise ValueError(
                "has maxFailures but is not an array; set count or items, or use allowFailure"
            )
        return self


def _within_budget(tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    jobs = sum(task.size for task in tasks)
    if jobs > MAX_JOBS:
        raise ValueError(
            f"have {jobs:,} jobs, each element of an array counted; "
            f"at most {MAX_JOBS:,} are allowed in one workflow: split it"
        )
    return tasks


def _within_budget_of_finally(tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    jobs = sum(task.size for task in tasks)
    if jobs > MAX_FINALLY_JOBS:
        raise ValueError(
            f"have {jobs:,} jobs, each element of an array counted; "
            f"at most {MAX_FINALLY_JOBS:,} are allowed in finally"
        )
    return tasks


class TaskDefaults(base.Record):
    """Fields of all tasks that do not set them."""

    pool: PoolName | None = Field(
        None, description="The WorkerPool whose workers run the commands."
    )
    max_attempts: Attempts | None = Field(
        None, description="Attempts that may fail before a job fails."
    )
    backoff: Backoff | None = Field(None, description="Delays between retries.")
    timeout: base.PositiveDuration | None = Field(None, description="How long one attempt may run.")


class WorkflowSpec(base.Record):
    """The tasks, and what applies to all of them."""

    tasks: Annotated[base.ListOf[Task], AfterValidator(_within_budget)] = Field(
        min_length=1, max_length=MAX_TASKS, description="Tasks, in any order."
    )
    finally_: Annotated[base.ListOf[Task], AfterValidator(_within_budget_of_finally)] = Field(
        (),
        alias="finally",
        max_length=MAX_FINALLY,
        description="Tasks that start when all other tasks have ended, also after a failure, a"
        " cancellation or the deadline. They can depend on each other only. The workflow fails if"
        " one of them fails.",
    )
    env: Annotated[base.ListOf[EnvVar], base.unique_by("name")] = Field(
        (),
        max_length=MAX_ENV_VARS,
        description="Environment variables of all commands. Those of a task override them.",
    )
    defaults: TaskDefaults = Field(
        TaskDefaults(), description="Values for tasks that do not set these fields."
    )
    deadline: base.PositiveDuration | None = Field(
        None,
        description="How long all tasks may take from submission to end, including waiting. Then"
        " the workflow is cancelled and fails.",
    )
    fail_fast: bool = Field(
        default=False,
        description="If true, the first failed task cancels the tasks that have not ended. Failures"
        " that allowFailure or maxFailures allow do not.",
    )
    priority: Priority = Field(0, description="Jobs of higher priority start first within a pool.")
    suspend: bool = Field(
        default=False, description="If true, no further job starts. It can be changed at any time."
    )
    cancel: bool = Field(
        default=False,
        description="Set to true to cancel the workflow. This cannot be undone. Tasks of finally"
        " run nevertheless.",
    )
    force_cancel: bool = Field(
        default=False,
        description="Set to true to cancel the workflow and its tasks of finally. This cannot be"
        " undone.",
    )
    ttl_seconds_after_finished: Seconds | None = Field(
        None, description="Seconds after its end when the object is deleted. Default: never."
    )

    @property
    def is_cancelled(self) -> bool:
        """Whether it is to be cancelled."""
        return self.cancel or self.force_cancel

    @property
    def is_forced(self) -> bool:
        """Whether tasks of `finally` are to be cancelled, too."""
        return self.force_cancel

    @property
    def all_tasks(self) -> tuple[Task, ...]:
        """The tasks, followed by those of `finally`."""
        return (*self.tasks, *self.finally_) if self.finally_ else self.tasks

    def path_of(self, at: int) -> tuple[str, int]:
        """Return the path of a task by its position among all tasks."""
        count = len(self.tasks)
        return ("tasks", at) if at < count else ("finally", at - count)

    def resolved_tasks(self) -> tuple[Task, ...]:
        """Return all tasks with the variables and defaults of the workflow."""
        tasks, given = self.all_tasks, self.defaults.model_fields_set
        if not given and not self.env:
            return tasks
        defaults = {name: getattr(self.defaults, name) for name in given}
        return tuple(self._resolved(task, defaults) for task in tasks)

    def _resolved(self, task: Task, defaults: Mapping[str, Any]) -> Task:
        own = {one.name for one in task.env}
        env = (*(one for one in self.env if one.name not in own), *task.env)
        fields = {k: v for k, v in defaults.items() if k not in task.model_fields_set}
        return task.model_copy(update=fields | ({"env": env} if env else {}))


class Workflow(Resource):
    """A DAG of jobs that is submitted as a whole."""

    kind: Literal["Workflow"] = Field("Workflow", description="Kind of the object: Workflow.")
    spec: WorkflowSpec = Field(description="The tasks and what applies to all of them.")
    status: Annotated[WorkflowStatus | None, FromSystem] = Field(
        None, description="Current state, written by the controller."
    )

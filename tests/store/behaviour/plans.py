"""Plans written by hand, for the tests of the stores; `core.planner` is tested elsewhere.

A workflow is a call with a keyword for each task: `dag(a=task(), b=task("a"))`.
"""

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from workron.core.plan import (
    TASKS_OFFSET,
    Edge,
    ExternalDependency,
    Identity,
    Kind,
    Plan,
    PlannedJob,
    SchedulingTerms,
    plain_specs,
)
from workron.core.verdict import Condition

NAMESPACE = "space"
HOUR = timedelta(hours=1)

_uids = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of a workflow; with a `count` it is an array."""

    needs: Mapping[str, Condition]
    count: int | None = None
    items: Sequence[Any] = ()
    each: bool = False
    """Whether its elements are paired with those of the arrays that it needs."""
    allow_failure: bool = False
    outside: Sequence[ExternalDependency] = ()
    terms: SchedulingTerms = dataclasses.field(default_factory=SchedulingTerms)


def job(name: str = "job", *, outside: Sequence[ExternalDependency] = (), **about: Any) -> Plan:
    """Plan one job. `about` has fields of SchedulingTerms, Identity or Plan."""
    terms, identity, rest = _sort(about)
    node = PlannedJob(Kind.JOB, name, spec=0, upstreams=len(outside), feeds_inputs=bool(outside))
    return Plan(
        identity=Identity(**{"namespace": NAMESPACE, "kind": Kind.JOB, "name": name} | identity),
        nodes=[node],
        terms=[SchedulingTerms(**terms)],
        specs=plain_specs([{"command": f"run {name}"}]),
        external=outside,
        **_digested({"digest": "first"} | rest),
    )


def task(*names: str, count: int | None = None, each: bool = False, **about: Any) -> Task:
    """Describe a task that needs the success of `names`; `when` gives other conditions.

    `items` makes it an array, `outside` lists other runs that it depends on, `allow_failure` allows
    it to fail; the rest are fields of SchedulingTerms.
    """
    needs = dict.fromkeys(names, Condition.SUCCEEDED) | about.pop("when", {})
    items = about.pop("items", ())
    outside = about.pop("outside", ())
    allow_failure = about.pop("allow_failure", False)
    return Task(
        *(needs, len(items) or count, items, each),
        *(allow_failure, outside, SchedulingTerms(**about)),
    )


def dag(name: str = "flow", about: Mapping[str, Any] | None = None, /, **tasks: Task) -> Plan:
    """Plan a workflow. `about` is as for `job`, and can have the tasks of `finally` as `last`."""
    fields = dict(about or {})
    last: Mapping[str, Task] = fields.pop("last", {})
    terms, identity, rest = _sort(fields)
    layout = _Layout(name, tasks, last, SchedulingTerms(**terms))
    return Plan(
        identity=Identity(
            **{"namespace": NAMESPACE, "kind": Kind.WORKFLOW, "name": name} | identity
        ),
        nodes=layout.nodes(),
        terms=layout.terms,
        specs=plain_specs(layout.bodies),
        edges=layout.edges,
        external=layout.outside,
        finally_from=layout.offsets[next(iter(last))] if last else None,
        **_digested({"digest": "first"} | rest),
    )


def array(count: int, name: str = "flow", **about: Any) -> Plan:
    """Plan a workflow of one array, `work`."""
    return dag(name, work=task(count=count, **about))


def outside(
    name: str, when: Condition = Condition.SUCCEEDED, *, kind: Kind = Kind.JOB
) -> ExternalDependency:
    """Depend on another run; `dag` sets the downstream."""
    return ExternalDependency(0, kind, name, when)


def again(plan: Plan, **changes: Any) -> Plan:
    """Plan the same under a new uid."""
    identity = dataclasses.replace(plan.identity, uid=_new_uid())
    return dataclasses.replace(plan, **{"identity": identity} | _digested(changes))


def _digested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Replace a digest by the function that returns it, as a Plan has it."""
    return {k: functools.partial(str, v) if k == "digest" else v for k, v in fields.items()}


def _new_uid() -> UUID:
    return UUID(int=next(_uids))


def _sort(about: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Separate the fields of SchedulingTerms, of Identity and of Plan."""
    terms = {f.name for f in dataclasses.fields(SchedulingTerms)}
    identity = {f.name for f in dataclasses.fields(Identity)}
    return (
        {key: value for key, value in about.items() if key in terms},
        {"uid": _new_uid()} | {key: value for key, value in about.items() if key in identity},
        {key: value for key, value in about.items() if key not in terms | identity},
    )


class _Layout:
    """The offsets of a workflow's jobs, and the nodes and edges that follow from them."""

    def __init__(
        self,
        name: str,
        first: Mapping[str, Task],
        last: Mapping[str, Task],
        terms: SchedulingTerms,
    ) -> None:
        self.name = name
        self.first = first
        self.last = last
        self.tasks = tasks = {**first, **last}
        self.terms = [terms, *(one.terms for one in tasks.values())]
        self.bodies: list[dict[str, Any]] = [{"tasks": len(tasks)}]
        self.bodies += [{"command": f"run {key}"} for key in tasks]
        sizes = [1 + (value.count or 0) for value in tasks.values()]
        starts = itertools.accumulate(sizes, initial=1 + bool(last))
        self.offsets = dict(zip(tasks, starts, strict=False))
        self.edges = [edge for key in tasks for edge in self._edges_into(key)]
        self.outside = [
            dataclasses.replace(other, downstream=offset)
            for key, value in tasks.items()
            for other in value.outside
            for offset in self._commands(key)
        ]

    def nodes(self) -> list[PlannedJob]:
        """List the group, then each task, each array followed by its elements."""
        incoming = [edge.downstream for edge in self.edges]
        incoming += [other.downstream for other in self.outside]
        counts = Counter(incoming)
        fed = {edge.downstream for edge in self.edges}
        first, last = len(self.first), len(self.last)
        group = PlannedJob(Kind.WORKFLOW, self.name, spec=0, upstreams=last + 1 if last else first)
        bare = [group]
        if last:
            whole = PlannedJob(Kind.TASKS, "(tasks)", spec=0, upstreams=first)
            bare.append(dataclasses.replace(whole, group_id=0, group_condition=Condition.TASK))
        for spec, key in enumerate(self.tasks, start=1):
            bare += self._nodes_of(key, spec)
        return [
            dataclasses.replace(
                node,
                upstreams=node.upstreams + counts[offset],
                feeds_inputs=offset in fed and node.name not in self._waiting_for_tasks,
            )
            for offset, node in enumerate(bare)
        ]

    def _nodes_of(self, key: str, spec: int) -> list[PlannedJob]:
        is_allowed = self.tasks[key].allow_failure
        group_condition = Condition.ALLOWED_TASK if is_allowed else Condition.TASK
        count = self.tasks[key].count
        group = TASKS_OFFSET if self.last and key in self.first else 0
        if count is None:
            return [
                PlannedJob(Kind.JOB, key, spec, group_id=group, group_condition=group_condition)
            ]
        whole = PlannedJob(
            Kind.ARRAY, key, spec, group_id=group, group_condition=group_condition, upstreams=count
        )
        element = PlannedJob(
            Kind.JOB, key, spec, group_id=self.offsets[key], group_condition=Condition.MEMBER
        )
        items = self.tasks[key].items or [None] * count
        pairs = enumerate(items)
        return [whole, *(dataclasses.replace(element, index=i, item=item) for i, item in pairs)]

    def _commands(self, key: str) -> list[int]:
        offset, count = self.offsets[key], self.tasks[key].count
        return [offset] if count is None else [offset + 1 + i for i in range(count)]

    @property
    def _waiting_for_tasks(self) -> set[str]:
        return {key for key, value in self.last.items() if not value.needs}

    def _edges_into(self, key: str) -> list[Edge]:
        value = self.tasks[key]
        if key in self._waiting_for_tasks:
            commands = self._commands(key)
            return [Edge(TASKS_OFFSET, offset, Condition.FINISHED) for offset in commands]
        return [
            Edge(self.offsets[need] + (1 + i if value.each else 0), offset, when)
            for need, when in value.needs.items()
            for i, offset in enumerate(self._commands(key))
        ]

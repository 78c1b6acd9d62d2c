"""A submission as rows: which table gets what, as COPY reads it. Pure; called by `submit`.

A row is put together in one go: there are several for each job, and to have them as tuples first
would double what they cost.
"""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from workron.core import json_text
from workron.core.ids import JobId
from workron.core.plan import WIDE, Kind
from workron.store.postgres.copy_text import NULL, PAUSE, escaped, line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from workron.core.plan import Node, Plan, Terms

    Placed = Sequence[tuple[JobId, Plan]]
    Pools = Mapping[tuple[str, str], int]
    Table = tuple[str, tuple[str, ...], Iterable[str]]


_ESCAPE: Final = "\\"
_ESCAPED: Final = 2 * _ESCAPE
_COLUMNS: Final = {
    "job": (
        *("id", "spec", "kind", "name", "index", "item", "member_of", "bearing", "feeds_inputs"),
        *("root", "priority", "pool", "max_losses", "start_after", "needs_proof"),
    ),
    "edge": ("parent", "child", "condition"),
    "unbound": ("child", "namespace", "kind", "name", "condition"),
    "waiting": ("job", "remaining", "held", "wide", "priority"),
    "ready": ("job", "pool", "priority"),
    "deadline": ("job", "due"),
    # Last, for these take the longest to be worked out: meanwhile the server has the others.
    "spec": ("id", "body"),
    "root": (
        *("id", "last", "uid", "namespace", "kind", "name", "digest"),
        *("submitted_at", "metadata", "held", "priority", "generation"),
    ),
}


def tables(placed: Placed, pools: Pools, now: datetime) -> Iterator[Table]:
    """Give each table its columns and its rows, in the order in which they are copied."""
    rows: Mapping[str, Callable[[JobId, Plan], Iterable[str]]] = {
        "job": lambda base, plan: _jobs(base, plan, pools),
        "edge": _edges,
        "unbound": _unbound,
        "waiting": _waiting,
        "ready": lambda base, plan: _ready(base, plan, pools),
        "deadline": lambda base, plan: _deadlines(base, plan, now),
        "spec": _specs,
        "root": lambda base, plan: _root(base, plan, now),
    }
    for table, columns in _COLUMNS.items():
        yield table, columns, itertools.chain.from_iterable(itertools.starmap(rows[table], placed))


def idle(placed: Placed) -> Iterator[JobId]:
    """Give the waiting jobs that wait for nothing but the time of day."""
    for base, plan in placed:
        if all(terms.start_after is None for terms in plan.terms):
            continue
        for job, node in _waiters(base, plan):
            if not node.upstreams and not _is_held(plan, node):
                yield JobId(job)


def _root(base: JobId, plan: Plan, now: datetime) -> Iterator[str]:
    yield from (PAUSE for _ in plan.digest.steps())
    who = plan.identity
    last = base + len(plan.nodes) - 1
    metadata = json.dumps(dict(plan.metadata))
    yield line(
        *(base, last, who.uid, who.namespace, who.kind, who.name, plan.digest()),
        *(now, metadata, plan.is_suspended, plan.priority, plan.generation),
    )


def _specs(base: JobId, plan: Plan) -> Iterator[str]:
    # JSON has no tabs or ends of lines but as escapes.
    return (
        f"{base + number}\t{text.replace(_ESCAPE, _ESCAPED)}\n"
        for number, text in plan.specs.worded()
    )


def _edges(base: JobId, plan: Plan) -> Iterator[str]:
    return (
        f"{base + edge.upstream}\t{base + edge.downstream}\t{edge.condition}\n"
        for edge in plan.edges
    )


def _unbound(base: JobId, plan: Plan) -> Iterator[str]:
    namespace = plan.identity.namespace
    return (
        line(base + one.downstream, namespace, one.kind, one.name, one.condition)
        for one in plan.outside
    )


def _jobs(base: JobId, plan: Plan, pools: Pools) -> Iterator[str]:
    ends = _ends(base, plan, pools)
    for job, node in enumerate(plan.nodes, base):
        index = NULL if node.index is None else node.index
        item = NULL if node.item is None else escaped(json_text.worded(node.item))
        member_of = NULL if node.member_of is None else base + node.member_of
        yield (
            f"{job}\t{base + node.spec}\t{node.kind}\t{escaped(node.name)}\t{index}\t{item}"
            f"\t{member_of}\t{node.bearing or NULL}\t{node.feeds_inputs}\t{ends[node.spec]}"
        )


def _ends(base: JobId, plan: Plan, pools: Pools) -> list[str]:
    """Word what all jobs of a spec have in common, which is the end of their rows."""
    namespace = plan.identity.namespace
    return _of_each(
        plan.terms,
        lambda terms: line(
            *(base, plan.priority, pools[namespace, terms.pool]),
            *(terms.max_losses, terms.start_after, terms.needs_proof),
        ),
    )


def _of_each(every: Sequence[Terms], word: Callable[[Terms], str]) -> list[str]:
    """Word terms once for all specs that share them, which know each other by nothing else."""
    worded = {id(terms): word(terms) for terms in {id(terms): terms for terms in every}.values()}
    return [worded[id(terms)] for terms in every]


def _is_held(plan: Plan, node: Node) -> bool:
    return plan.is_suspended and node.kind is Kind.JOB


def _waiters(base: JobId, plan: Plan) -> Iterator[tuple[int, Node]]:
    """Give the jobs that are not ready at once."""
    late = _late(plan)
    for job, node in enumerate(plan.nodes, base):
        if node.upstreams or node.kind is not Kind.JOB or late[node.spec]:
            yield job, node


def _late(plan: Plan) -> list[bool]:
    """Tell of each spec whether even a job that waits for no other is not ready."""
    return [plan.is_suspended or terms.start_after is not None for terms in plan.terms]


def _waiting(base: JobId, plan: Plan) -> Iterator[str]:
    for job, node in _waiters(base, plan):
        is_held = _is_held(plan, node)
        is_wide = node.kind is not Kind.JOB or node.upstreams > WIDE
        yield f"{job}\t{node.upstreams + is_held}\t{is_held}\t{is_wide}\t{plan.priority}\n"


def _ready(base: JobId, plan: Plan, pools: Pools) -> Iterator[str]:
    late, namespace = _late(plan), plan.identity.namespace
    ends = _of_each(plan.terms, lambda terms: line(pools[namespace, terms.pool], plan.priority))
    for job, node in enumerate(plan.nodes, base):
        if not (node.upstreams or node.kind is not Kind.JOB or late[node.spec]):
            yield f"{job}\t{ends[node.spec]}"


def _deadlines(base: JobId, plan: Plan, now: datetime) -> Iterator[str]:
    dues = [terms.deadline_seconds for terms in plan.terms]
    for job, node in enumerate(plan.nodes, base):
        seconds = dues[node.spec]
        if seconds is not None and node.kind is Kind.JOB:
            yield line(job, now + timedelta(seconds=seconds))

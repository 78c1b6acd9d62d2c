"""A submission as rows: which table gets what. Pure; called by `submit`."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from workron.core import json_text
from workron.core.ids import JobId
from workron.core.plan import WIDE, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from workron.core.plan import Node, Plan

    Placed = Sequence[tuple[JobId, Plan]]
    Pools = Mapping[tuple[str, str], int]
    Table = tuple[str, tuple[str, ...], Iterable[tuple[Any, ...]]]


_COLUMNS: Final = {
    "root": (
        *("id", "last", "uid", "namespace", "kind", "name", "digest"),
        *("submitted_at", "metadata", "held"),
    ),
    "spec": ("id", "body"),
    "job": (
        *("id", "root", "kind", "spec", "name", "index", "item", "member_of", "bearing"),
        *("pool", "priority", "feeds_inputs", "max_losses", "start_after", "needs_proof"),
    ),
    "edge": ("parent", "child", "condition"),
    "unbound": ("child", "namespace", "kind", "name", "condition"),
    "waiting": ("job", "remaining", "held", "wide", "priority"),
    "ready": ("job", "pool", "priority"),
    "deadline": ("job", "due"),
}


def tables(placed: Placed, pools: Pools, now: datetime) -> Iterator[Table]:
    """Give each table its columns and its rows, in the order in which they are copied."""
    rows: Mapping[str, Callable[[JobId, Plan], Iterable[tuple[Any, ...]]]] = {
        "root": lambda base, plan: [_root(base, plan, now)],
        "spec": _specs,
        "job": lambda base, plan: _jobs(base, plan, pools),
        "edge": _edges,
        "unbound": _unbound,
        "waiting": _waiting,
        "ready": lambda base, plan: _ready(base, plan, pools),
        "deadline": lambda base, plan: _deadlines(base, plan, now),
    }
    for table, columns in _COLUMNS.items():
        yield table, columns, itertools.chain.from_iterable(itertools.starmap(rows[table], placed))


def idle(placed: Placed) -> Iterator[JobId]:
    """Give the waiting jobs that wait for nothing but the time of day."""
    for base, plan in placed:
        for offset, node in enumerate(plan.nodes):
            if _is_in_waiting(plan, node) and not node.upstreams and not _is_held(plan, node):
                yield JobId(base + offset)


def _root(base: JobId, plan: Plan, now: datetime) -> tuple[Any, ...]:
    who = plan.identity
    last = base + len(plan.nodes) - 1
    metadata = json.dumps(dict(plan.metadata))
    return (
        *(base, last, who.uid, who.namespace, who.kind, who.name, plan.digest),
        *(now, metadata, plan.is_suspended),
    )


def _specs(base: JobId, plan: Plan) -> Iterator[tuple[Any, ...]]:
    return ((base + number, json_text.worded(spec.body)) for number, spec in enumerate(plan.specs))


def _edges(base: JobId, plan: Plan) -> Iterator[tuple[Any, ...]]:
    return ((base + edge.upstream, base + edge.downstream, edge.condition) for edge in plan.edges)


def _unbound(base: JobId, plan: Plan) -> Iterator[tuple[Any, ...]]:
    namespace = plan.identity.namespace
    return (
        (base + one.downstream, namespace, one.kind, one.name, one.condition)
        for one in plan.outside
    )


def _jobs(base: JobId, plan: Plan, pools: Pools) -> Iterator[tuple[Any, ...]]:
    namespace = plan.identity.namespace
    by_spec = [(spec.terms, pools[namespace, spec.terms.pool]) for spec in plan.specs]
    for offset, node in enumerate(plan.nodes):
        terms, pool = by_spec[node.spec]
        item = None if node.item is None else json_text.worded(node.item)
        member_of = None if node.member_of is None else base + node.member_of
        yield (
            *(base + offset, base, node.kind, base + node.spec, node.name, node.index),
            *(item, member_of, node.bearing, pool, plan.priority, node.feeds_inputs),
            *(terms.max_losses, terms.start_after, terms.needs_proof),
        )


def _is_held(plan: Plan, node: Node) -> bool:
    return plan.is_suspended and node.kind is Kind.JOB


def _is_in_waiting(plan: Plan, node: Node) -> bool:
    return (
        node.upstreams > 0
        or node.kind is not Kind.JOB
        or plan.is_suspended
        or plan.specs[node.spec].terms.start_after is not None
    )


def _waiting(base: JobId, plan: Plan) -> Iterator[tuple[Any, ...]]:
    for offset, node in enumerate(plan.nodes):
        if _is_in_waiting(plan, node):
            is_held = _is_held(plan, node)
            is_wide = node.kind is not Kind.JOB or node.upstreams > WIDE
            yield (base + offset, node.upstreams + is_held, is_held, is_wide, plan.priority)


def _ready(base: JobId, plan: Plan, pools: Pools) -> Iterator[tuple[Any, ...]]:
    namespace = plan.identity.namespace
    by_spec = [pools[namespace, spec.terms.pool] for spec in plan.specs]
    for offset, node in enumerate(plan.nodes):
        if not _is_in_waiting(plan, node):
            yield (base + offset, by_spec[node.spec], plan.priority)


def _deadlines(base: JobId, plan: Plan, now: datetime) -> Iterator[tuple[Any, ...]]:
    for offset, node in enumerate(plan.nodes):
        seconds = plan.specs[node.spec].terms.deadline_seconds
        if seconds is not None and node.kind is Kind.JOB:
            yield (base + offset, now + timedelta(seconds=seconds))

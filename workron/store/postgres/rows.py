"""A submission as rows: which table gets what. Pure; called by `submit`."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from workron.core.plan import WIDE, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from workron.core.ids import JobId
    from workron.core.plan import Node, Plan

    Placed = Sequence[tuple[JobId, Plan]]
    Pools = Mapping[tuple[str, str], int]
    Table = tuple[str, tuple[str, ...], Iterable[tuple[Any, ...]]]


def tables(placed: Placed, pools: Pools, now: datetime) -> Iterator[Table]:
    """Give each table its columns and its rows, in the order in which they are copied."""
    yield (
        "root",
        (
            *("id", "last", "uid", "namespace", "kind", "name", "digest"),
            *("submitted_at", "metadata", "held"),
        ),
        (_root(base, plan, now) for base, plan in placed),
    )
    yield (
        "spec",
        ("id", "body"),
        (
            (base + number, json.dumps(spec.body))
            for base, plan in placed
            for number, spec in enumerate(plan.specs)
        ),
    )
    yield (
        "job",
        (
            *("id", "root", "kind", "spec", "name", "index", "item", "member_of", "bearing"),
            *("pool", "priority", "feeds_inputs", "max_losses", "start_after", "needs_proof"),
        ),
        (row for base, plan in placed for row in _jobs(base, plan, pools)),
    )
    yield (
        "edge",
        ("parent", "child", "condition"),
        (
            (base + edge.upstream, base + edge.downstream, edge.condition)
            for base, plan in placed
            for edge in plan.edges
        ),
    )
    yield (
        "unbound",
        ("child", "namespace", "kind", "name", "condition"),
        (
            (base + one.downstream, plan.identity.namespace, one.kind, one.name, one.condition)
            for base, plan in placed
            for one in plan.outside
        ),
    )
    yield (
        "waiting",
        ("job", "remaining", "held", "wide", "priority"),
        (row for base, plan in placed for row in _waiting(base, plan)),
    )
    yield (
        "ready",
        ("job", "pool", "priority"),
        (row for base, plan in placed for row in _ready(base, plan, pools)),
    )
    yield (
        "deadline",
        ("job", "due"),
        (row for base, plan in placed for row in _deadlines(base, plan, now)),
    )


def idle(placed: Placed) -> Iterator[JobId]:
    """Give the waiting jobs that wait for nothing but the time of day."""
    for base, plan in placed:
        for offset, node in enumerate(plan.nodes):
            if _is_in_waiting(plan, node) and not node.upstreams and not _is_held(plan, node):
                yield type(base)(base + offset)


def _root(base: JobId, plan: Plan, now: datetime) -> tuple[Any, ...]:
    who = plan.identity
    last = base + len(plan.nodes) - 1
    metadata = json.dumps(dict(plan.metadata))
    return (
        *(base, last, who.uid, who.namespace, who.kind, who.name, plan.digest),
        *(now, metadata, plan.is_suspended),
    )


def _jobs(base: JobId, plan: Plan, pools: Pools) -> Iterator[tuple[Any, ...]]:
    namespace = plan.identity.namespace
    by_spec = [(spec.terms, pools[namespace, spec.terms.pool]) for spec in plan.specs]
    for offset, node in enumerate(plan.nodes):
        terms, pool = by_spec[node.spec]
        item = None if node.item is None else json.dumps(node.item)
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

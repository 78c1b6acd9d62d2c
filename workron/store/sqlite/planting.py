"""Storing the rows of one plan: its jobs, edges and specs, and where each job waits.

Called by `submit`. Rows go in from generators, so that a large plan is never there twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from workron.core import json_text
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.store.sqlite import micros

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workron.core.plan import Identity, Plan, Terms
    from workron.store.sqlite.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Plot:
    """A plan and the ids that its jobs have now."""

    plan: Plan
    root: JobId
    last: JobId

    def range(self) -> dict[str, int]:
        """Name its ids for a statement."""
        return {"root": self.root, "last": self.last}


def name_of(identity: Identity) -> dict[str, str]:
    """Name a root for a statement."""
    return {"namespace": identity.namespace, "kind": identity.kind, "name": identity.name}


def plant(tx: Transaction, plan: Plan, base: JobId) -> Plot:
    """Store a plan under `base`, or behind the roots that have taken it."""
    plot = _choose_ids(tx, plan, base)
    _add_root(tx, plot)
    tx.fill("submit.add_specs", _spec_rows(plot))
    tx.fill("submit.add_jobs", _job_rows(plot, _shares(tx, plot)))
    tx.fill("submit.add_edges", _edge_rows(plot))
    tx.fill("submit.add_deadlines", _deadline_rows(plot, tx.now))
    tx.fill("submit.add_waiting", _waiting_rows(plot))
    tx.fill("submit.add_unbound", _unbound_rows(plot))
    tx.run("submit.tell_empty_groups", **plot.range())
    tx.run("submit.free", **plot.range())
    return plot


def _choose_ids(tx: Transaction, plan: Plan, base: JobId) -> Plot:
    size = len(plan.nodes)
    while True:
        last = JobId(base + size - 1)
        other = tx.row("submit.overlapping", root=base, last=last)
        if other is None:
            return Plot(plan, base, last)
        base = JobId(other["last"] + 1)


def _add_root(tx: Transaction, plot: Plot) -> None:
    plan = plot.plan
    name = name_of(plan.identity)
    tx.run(
        "submit.add_root",
        uid=str(plan.identity.uid),
        digest=plan.digest(),
        metadata=json_text.worded(plan.metadata),
        held=plan.is_suspended,
        priority=plan.priority,
        generation=plan.generation,
        **name,
        **plot.range(),
    )
    tx.run("submit.take_name", root=plot.root, **name)


def _shares(tx: Transaction, plot: Plot) -> list[tuple[Any, ...]]:
    """Work out once a spec what all of its jobs have in common."""
    namespace = plot.plan.identity.namespace
    pools = {terms.pool for terms in plot.plan.terms}
    known = {name: _pool(tx, namespace, name) for name in pools}
    return [_share(terms, known[terms.pool]) for terms in plot.plan.terms]


def _pool(tx: Transaction, namespace: str, name: str) -> int:
    tx.run("submit.add_pool", namespace=namespace, name=name)
    pool: int = tx.row("submit.pool", namespace=namespace, name=name)["id"]
    return pool


def _share(terms: Terms, pool: int) -> tuple[Any, ...]:
    start = None if terms.start_after is None else micros.of_time(terms.start_after)
    return pool, terms.max_losses, start, terms.needs_proof


def _spec_rows(plot: Plot) -> Iterator[tuple[int, str]]:
    return ((plot.root + number, text) for number, text in plot.plan.specs.worded())


def _job_rows(plot: Plot, shares: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    root, priority = plot.root, plot.plan.priority
    for job, node in enumerate(plot.plan.nodes, start=root):
        pool, max_losses, start_after, needs_proof = shares[node.spec]
        yield (
            job,
            root,
            node.kind,
            root + node.spec,
            node.name,
            node.index,
            None if node.item is None else json_text.worded(node.item),
            None if node.member_of is None else root + node.member_of,
            node.bearing,
            pool,
            priority,
            node.feeds_inputs,
            max_losses,
            start_after,
            needs_proof,
        )


def _edge_rows(plot: Plot) -> Iterator[tuple[int, int, str]]:
    root = plot.root
    for edge in sorted(plot.plan.edges, key=attrgetter("upstream")):
        yield root + edge.upstream, root + edge.downstream, edge.condition


def _deadline_rows(plot: Plot, now: int) -> Iterator[tuple[int, int]]:
    dues = [terms.deadline_seconds for terms in plot.plan.terms]
    for job, node in enumerate(plot.plan.nodes, start=plot.root):
        seconds = dues[node.spec]
        if seconds is not None and node.kind is Kind.JOB:
            yield job, now + micros.of_seconds(seconds)


def _waiting_rows(plot: Plot) -> Iterator[tuple[int, int, bool, int]]:
    plan = plot.plan
    for job, node in enumerate(plan.nodes, start=plot.root):
        is_held = plan.is_suspended and node.kind is Kind.JOB
        if node.upstreams or is_held or node.kind is not Kind.JOB:
            yield job, node.upstreams + is_held, is_held, plan.priority


def _unbound_rows(plot: Plot) -> Iterator[tuple[Any, ...]]:
    namespace = plot.plan.identity.namespace
    for outside in plot.plan.outside:
        child = plot.root + outside.downstream
        yield child, namespace, outside.kind, outside.name, outside.condition

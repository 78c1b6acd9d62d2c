"""The door for what people and the operator ask for: submit, cancel, hold, resume, ensure_pool.

One of the doors of `store`; `planting` stores a plan's rows, `binding` ties runs to each other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from workron.core import errors, ids, payloads
from workron.core.ids import JobId
from workron.core.plan import ExistingRuns, Kind, find_existing
from workron.store.sqlite import bulk_update, completion, engine, tokens
from workron.store.sqlite.engine import SqliteVerbs
from workron.store.types import SubmittedRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from workron.core.plan import Identity, Plan, SchedulingTerms
    from workron.store.sqlite.engine import Transaction


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan and the ids that its jobs have now."""

    plan: Plan
    run: JobId
    last: JobId

    def range(self) -> dict[str, int]:
        """Name its ids for a statement."""
        return {"run": self.run, "last": self.last}


def name_of(identity: Identity) -> dict[str, str]:
    """Name a run for a statement."""
    return {"namespace": identity.namespace, "kind": identity.kind, "name": identity.name}


def insert_plan(tx: Transaction, plan: Plan, base: JobId) -> StoredPlan:
    """Store a plan under `base`, or behind the runs that have taken it."""
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


def _choose_ids(tx: Transaction, plan: Plan, base: JobId) -> StoredPlan:
    size = len(plan.nodes)
    while True:
        last = JobId(base + size - 1)
        other = tx.row("submit.overlapping", run=base, last=last)
        if other is None:
            return StoredPlan(plan, base, last)
        base = JobId(other["last"] + 1)


def _add_root(tx: Transaction, plot: StoredPlan) -> None:
    plan = plot.plan
    name = name_of(plan.identity)
    tx.run(
        "submit.add_root",
        uid=str(plan.identity.uid),
        digest=plan.digest(),
        metadata=payloads.to_json(plan.metadata),
        held=plan.is_suspended,
        priority=plan.priority,
        generation=plan.generation,
        **name,
        **plot.range(),
    )
    tx.run("submit.take_name", run=plot.run, **name)


def _shares(tx: Transaction, plot: StoredPlan) -> list[tuple[Any, ...]]:
    """Work out once a spec what all of its jobs have in common."""
    namespace = plot.plan.identity.namespace
    pools = {terms.pool for terms in plot.plan.terms}
    known = {name: _pool(tx, namespace, name) for name in pools}
    return [_share(terms, known[terms.pool]) for terms in plot.plan.terms]


def _pool(tx: Transaction, namespace: str, name: str) -> int:
    tx.run("submit.add_pool", namespace=namespace, name=name)
    pool: int = tx.row("submit.pool", namespace=namespace, name=name)["id"]
    return pool


def _share(terms: SchedulingTerms, pool: int) -> tuple[Any, ...]:
    start = None if terms.start_after is None else engine.to_micros(terms.start_after)
    return pool, terms.max_losses, start, terms.needs_proof


def _spec_rows(plot: StoredPlan) -> Iterator[tuple[int, str]]:
    return ((plot.run + number, text) for number, text in plot.plan.specs.worded())


def _job_rows(plot: StoredPlan, shares: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    run, priority = plot.run, plot.plan.priority
    for job, node in enumerate(plot.plan.nodes, start=run):
        pool, max_losses, start_after, needs_proof = shares[node.spec]
        yield (
            job,
            run,
            node.kind,
            run + node.spec,
            node.name,
            node.index,
            None if node.item is None else payloads.to_json(node.item),
            None if node.group_id is None else run + node.group_id,
            node.group_condition,
            pool,
            priority,
            node.feeds_inputs,
            max_losses,
            start_after,
            needs_proof,
        )


def _edge_rows(plot: StoredPlan) -> Iterator[tuple[int, int, str]]:
    run = plot.run
    for edge in sorted(plot.plan.edges, key=attrgetter("upstream")):
        yield run + edge.upstream, run + edge.downstream, edge.condition


def _deadline_rows(plot: StoredPlan, now: int) -> Iterator[tuple[int, int]]:
    dues = [terms.deadline_seconds for terms in plot.plan.terms]
    for job, node in enumerate(plot.plan.nodes, start=plot.run):
        seconds = dues[node.spec]
        if seconds is not None and node.kind is Kind.JOB:
            yield job, now + engine.seconds_to_micros(seconds)


def _waiting_rows(plot: StoredPlan) -> Iterator[tuple[int, int, bool, int]]:
    plan = plot.plan
    for job, node in enumerate(plan.nodes, start=plot.run):
        is_held = plan.is_suspended and node.kind is Kind.JOB
        if node.upstreams or is_held or node.kind is not Kind.JOB:
            yield job, node.upstreams + is_held, is_held, plan.priority


def _unbound_rows(plot: StoredPlan) -> Iterator[tuple[Any, ...]]:
    namespace = plot.plan.identity.namespace
    for outside in plot.plan.external:
        child = plot.run + outside.downstream
        yield child, namespace, outside.kind, outside.name, outside.condition


def bind_names(tx: Transaction, plot: StoredPlan) -> None:
    """Tie a new run to the upstreams that exist, and to all that waited for its name."""
    name = name_of(plot.plan.identity)
    if tx.run("submit.choose_upstreams", **plot.range(), **name):
        tx.run("submit.bind")
        tx.run("submit.tell_bound")
        tx.run("submit.unname", **plot.range(), **name)
        tx.run("clear.bond")


def refuse_cycle(tx: Transaction, plot: StoredPlan) -> None:
    """Raise CycleError if a new run waits for itself, directly or over others."""
    rows = tx.rows("submit.walk", run=plot.run)
    if all(row["downstream"] != plot.run for row in rows):
        return
    runs = {row["downstream"]: row for row in rows}
    cycle = [runs[run] for run in _circle(rows, plot.run)]
    names = " -> ".join(run["name"] for run in cycle)
    message = f"jobs wait for each other: {names}; take one of these waits out"
    raise errors.CycleError(message, [UUID(run["uid"]) for run in cycle])


def _circle(rows: Sequence[Any], start: int) -> list[int]:
    """Find a shortest way from `start` back to it, each before who waits for it."""
    downstreams: Mapping[int, list[int]] = defaultdict(list)
    for row in rows:
        downstreams[row["upstream"]].append(row["downstream"])
    ways = [[start]]
    seen: set[int] = set()
    for way in ways:
        for downstream in downstreams[way[-1]]:
            if downstream == start:
                return [*way, start]
            if downstream not in seen:
                seen.add(downstream)
                ways.append([*way, downstream])
    raise AssertionError("called only when there is one")


class SqliteSubmitStore(SqliteVerbs):
    """What is asked of the store from above."""

    async def submit(
        self, plans: Sequence[Plan], *, supersedes: bool = False
    ) -> Sequence[SubmittedRun]:
        """Store all plans, or none."""
        bases = [ids.mint_base(self._clock.now(), self._rng) for _ in plans]
        return await self._stir(partial(_submit, plans=plans, bases=bases, supersedes=supersedes))

    async def cancel(self, run: JobId) -> bool:
        """End all of a run that does not run, and mark what runs."""
        return await self._sweep(run, "cancel")

    async def suspend(self, run: JobId) -> bool:
        """Suspend all of a run that does not run, and what comes back from running."""
        return await self._sweep(run, "hold")

    async def resume(self, run: JobId) -> bool:
        """Undo `hold`, or a submission as suspended."""
        return await self._sweep(run, "resume")

    async def _sweep(self, run: JobId, verb: str) -> bool:
        if not await self._stir(partial(bulk_update.begin_update, run=run, verb=verb)):
            return False
        while not await self._stir(partial(bulk_update.update_step, run=run)):
            pass
        return True

    async def ensure_pool(
        self, namespace: str, name: str, *, lease_seconds: float | None = None
    ) -> str:
        """Make the pool if it is new, and answer one more token that admits workers to it."""
        token = tokens.mint(self._rng)
        pool = {"namespace": namespace, "name": name}
        await self._write(
            partial(_ensure_pool, pool=pool, token=token, lease_seconds=lease_seconds)
        )
        return token


def _ensure_pool(
    tx: Transaction, pool: Mapping[str, str], token: str, lease_seconds: float | None
) -> None:
    tx.run("ensure_pool.make", **pool)
    tx.run("ensure_pool.lease", lease=lease_seconds, **pool)
    tx.run("ensure_pool.drop_expired")
    expires = tx.now + engine.delta_to_micros(tokens.LIFE)
    tx.run("ensure_pool.admit", hash=tokens.digest(token), expires=expires, **pool)


def _submit(
    tx: Transaction, plans: Sequence[Plan], bases: Sequence[JobId], *, supersedes: bool
) -> list[SubmittedRun]:
    tx.clear()
    submitted = []
    planted = []
    for plan, base in zip(plans, bases, strict=True):
        run = _acknowledge(tx, plan, supersedes=supersedes)
        if run is None:
            planted.append(insert_plan(tx, plan, base))
            submitted.append(
                SubmittedRun(planted[-1].run, is_new=True, is_suspended=plan.is_suspended)
            )
        else:
            submitted.append(
                SubmittedRun(JobId(run["id"]), is_new=False, is_suspended=bool(run["held"]))
            )
    # Only now do all names of this submission stand.
    for plot in planted:
        bind_names(tx, plot)
    for plot in planted:
        refuse_cycle(tx, plot)
    completion.conclude_groups(tx)
    return submitted


def _acknowledge(tx: Transaction, plan: Plan, *, supersedes: bool) -> Any:
    """Find the run that this plan already is; None when it is new."""
    known = tx.row("submit.known", uid=str(plan.identity.uid))
    unfinished = tx.row("submit.unfinished", **name_of(plan.identity))
    digest = unfinished and unfinished["digest"]
    return find_existing(plan, ExistingRuns(known, unfinished, digest), supersedes=supersedes)

"""The interface for submissions and for changes of a whole run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from workron.core import errors, ids, payloads
from workron.core.ids import JobId
from workron.core.plan import Kind, repeats
from workron.store.sqlite import bulk_update, completion, engine, tokens
from workron.store.sqlite.engine import SqliteDatabase
from workron.store.types import SubmittedRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from workron.core.plan import Identity, Plan, SchedulingTerms
    from workron.store.sqlite.engine import Transaction


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan and the ids of its jobs."""

    plan: Plan
    run: JobId
    last: JobId

    def range(self) -> dict[str, int]:
        """Return its ids as parameters."""
        return {"run": self.run, "last": self.last}


def name_of(identity: Identity) -> dict[str, str]:
    """Return the name of a run as parameters."""
    return {"namespace": identity.namespace, "kind": identity.kind, "name": identity.name}


def insert_plan(tx: Transaction, plan: Plan, base: JobId) -> StoredPlan:
    """Insert a plan with ids from `base` on, or after existing runs with these ids."""
    stored = _choose_ids(tx, plan, base)
    _add_run(tx, stored)
    tx.fill("submit.add_specs", _spec_rows(stored))
    tx.fill("submit.add_jobs", _job_rows(stored, _job_columns(tx, stored)))
    tx.fill("submit.add_edges", _edge_rows(stored))
    tx.fill("submit.add_deadlines", _deadline_rows(stored, tx.now))
    tx.fill("submit.add_waiting", _waiting_rows(stored))
    tx.fill("submit.add_external_dependencies", _external_rows(stored))
    tx.run("submit.select_empty_groups", **stored.range())
    tx.run("submit.select_unblocked_jobs", **stored.range())
    return stored


def _choose_ids(tx: Transaction, plan: Plan, base: JobId) -> StoredPlan:
    size = len(plan.nodes)
    while True:
        last = JobId(base + size - 1)
        other = tx.row("submit.overlapping", run=base, last=last)
        if other is None:
            return StoredPlan(plan, base, last)
        base = JobId(other["last"] + 1)


def _add_run(tx: Transaction, stored: StoredPlan) -> None:
    plan = stored.plan
    name = name_of(plan.identity)
    tx.run(
        "submit.add_run",
        uid=str(plan.identity.uid),
        digest=plan.digest,
        metadata=payloads.to_json(plan.metadata),
        suspended=plan.is_suspended,
        priority=plan.priority,
        generation=plan.generation,
        **name,
        **stored.range(),
    )
    tx.run("submit.set_name", run=stored.run, **name)


def _job_columns(tx: Transaction, stored: StoredPlan) -> list[tuple[Any, ...]]:
    """Return for each spec the columns that all its jobs have in common."""
    namespace = stored.plan.identity.namespace
    pools = {terms.pool for terms in stored.plan.terms}
    known = {name: _pool(tx, namespace, name) for name in pools}
    return [_columns_of(terms, known[terms.pool]) for terms in stored.plan.terms]


def _pool(tx: Transaction, namespace: str, name: str) -> int:
    tx.run("submit.add_pool", namespace=namespace, name=name)
    pool: int = tx.row("submit.pool", namespace=namespace, name=name)["id"]
    return pool


def _columns_of(terms: SchedulingTerms, pool: int) -> tuple[Any, ...]:
    start = None if terms.start_after is None else engine.to_micros(terms.start_after)
    return pool, terms.max_losses, start, terms.needs_proof


def _spec_rows(stored: StoredPlan) -> Iterator[tuple[int, str]]:
    return ((stored.run + number, text) for number, text in stored.plan.encode_specs())


def _job_rows(stored: StoredPlan, columns: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    run, priority = stored.run, stored.plan.priority
    for job, node in enumerate(stored.plan.nodes, start=run):
        pool, max_losses, start_after, needs_proof = columns[node.spec]
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


def _edge_rows(stored: StoredPlan) -> Iterator[tuple[int, int, str]]:
    run = stored.run
    for edge in sorted(stored.plan.edges, key=attrgetter("upstream")):
        yield run + edge.upstream, run + edge.downstream, edge.condition


def _deadline_rows(stored: StoredPlan, now: int) -> Iterator[tuple[int, int]]:
    dues = [terms.deadline_seconds for terms in stored.plan.terms]
    for job, node in enumerate(stored.plan.nodes, start=stored.run):
        seconds = dues[node.spec]
        if seconds is not None and node.kind is Kind.JOB:
            yield job, now + engine.seconds_to_micros(seconds)


def _waiting_rows(stored: StoredPlan) -> Iterator[tuple[int, int, bool, int]]:
    plan = stored.plan
    for job, node in enumerate(plan.nodes, start=stored.run):
        is_suspended = plan.is_suspended and node.kind is Kind.JOB
        if node.upstreams or is_suspended or node.kind is not Kind.JOB:
            yield job, node.upstreams + is_suspended, is_suspended, plan.priority


def _external_rows(stored: StoredPlan) -> Iterator[tuple[Any, ...]]:
    namespace = stored.plan.identity.namespace
    for upstream in stored.plan.external:
        downstream = stored.run + upstream.downstream
        yield downstream, namespace, upstream.kind, upstream.name, upstream.condition


def link_run(tx: Transaction, stored: StoredPlan) -> None:
    """Add edges to the upstreams that exist, and from the jobs that wait for this name."""
    name = name_of(stored.plan.identity)
    if tx.run("submit.select_new_edges", **stored.range(), **name):
        tx.run("submit.insert_new_edges")
        tx.run("submit.count_ended_upstreams")
        tx.run("submit.delete_external_dependencies", **stored.range(), **name)
        tx.run("clear_scratch.new_edge")


def reject_cycle(tx: Transaction, stored: StoredPlan) -> None:
    """Raise CycleError if a new run waits for itself, directly or through other runs."""
    rows = tx.rows("submit.dependent_runs", run=stored.run)
    if all(row["downstream"] != stored.run for row in rows):
        return
    runs = {row["downstream"]: row for row in rows}
    cycle = [runs[run] for run in _shortest_cycle(rows, stored.run)]
    names = " -> ".join(run["name"] for run in cycle)
    message = f"jobs wait for each other: {names}; remove one of these dependencies"
    raise errors.CycleError(message, [UUID(run["uid"]) for run in cycle])


def _shortest_cycle(rows: Sequence[Any], start: int) -> list[int]:
    """Find a shortest cycle through `start`, upstreams first."""
    downstreams: Mapping[int, list[int]] = defaultdict(list)
    for row in rows:
        downstreams[row["upstream"]].append(row["downstream"])
    paths = [[start]]
    seen: set[int] = set()
    for path in paths:
        for downstream in downstreams[path[-1]]:
            if downstream == start:
                return [*path, start]
            if downstream not in seen:
                seen.add(downstream)
                paths.append([*path, downstream])
    raise AssertionError("called only when there is one")


class SqliteSubmitStore(SqliteDatabase):
    """`api.SubmitStore`."""

    async def submit(
        self, plans: Sequence[Plan], *, supersedes: bool = False
    ) -> Sequence[SubmittedRun]:
        """Store all plans, or none."""
        bases = [ids.mint_base(self._clock.now(), self._rng) for _ in plans]
        return await self._write_and_wake(
            partial(_submit, plans=plans, bases=bases, supersedes=supersedes)
        )

    async def cancel(self, run: JobId) -> bool:
        """Cancel a run's queued jobs and signal its running ones."""
        return await self._bulk_update(run, "cancel")

    async def suspend(self, run: JobId) -> bool:
        """Keep a run's jobs from starting."""
        return await self._bulk_update(run, "suspend")

    async def resume(self, run: JobId) -> bool:
        """Undo `suspend`, or a submission as suspended."""
        return await self._bulk_update(run, "resume")

    async def _bulk_update(self, run: JobId, operation: str) -> bool:
        if not await self._write_and_wake(
            partial(bulk_update.begin_update, run=run, operation=operation)
        ):
            return False
        while not await self._write_and_wake(partial(bulk_update.update_step, run=run)):
            pass
        return True

    async def ensure_pool(
        self, namespace: str, name: str, *, lease_seconds: float | None = None
    ) -> str:
        """Create the pool if needed, and return a new token for its workers."""
        token = tokens.mint(self._rng)
        pool = {"namespace": namespace, "name": name}
        await self._write(
            partial(_ensure_pool, pool=pool, token=token, lease_seconds=lease_seconds)
        )
        return token


def _ensure_pool(
    tx: Transaction, pool: Mapping[str, str], token: str, lease_seconds: float | None
) -> None:
    tx.run("ensure_pool.insert_pool", **pool)
    tx.run("ensure_pool.set_lease", lease=lease_seconds, **pool)
    tx.run("ensure_pool.delete_expired_tokens")
    expires = tx.now + engine.delta_to_micros(tokens.LIFE)
    tx.run("ensure_pool.insert_token", hash=tokens.digest(token), expires=expires, **pool)


def _submit(
    tx: Transaction, plans: Sequence[Plan], bases: Sequence[JobId], *, supersedes: bool
) -> list[SubmittedRun]:
    tx.clear()
    submitted = []
    stored_plans = []
    for plan, base in zip(plans, bases, strict=True):
        run = _find_existing(tx, plan, supersedes=supersedes)
        if run is None:
            stored_plans.append(insert_plan(tx, plan, base))
            submitted.append(
                SubmittedRun(stored_plans[-1].run, is_new=True, is_suspended=plan.is_suspended)
            )
        else:
            submitted.append(
                SubmittedRun(JobId(run["id"]), is_new=False, is_suspended=bool(run["suspended"]))
            )
    # All names of this submission exist only now.
    for stored in stored_plans:
        link_run(tx, stored)
    for stored in stored_plans:
        reject_cycle(tx, stored)
    completion.update_downstreams(tx)
    return submitted


def _find_existing(tx: Transaction, plan: Plan, *, supersedes: bool) -> Any:
    """Return the run that this plan repeats; None for a new one."""
    known = tx.row("submit.known", uid=str(plan.identity.uid))
    unfinished = tx.row("submit.unfinished", **name_of(plan.identity))
    digest = unfinished and unfinished["digest"]
    if known is None and repeats(plan, digest, supersedes=supersedes):
        return unfinished
    return known

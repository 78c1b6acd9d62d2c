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
from workron.core.plan import KINDS_WITH_DEADLINE, Kind, repeats
from workron.store import api
from workron.store.sqlite import completion, deletion, engine, pools
from workron.store.sqlite.bulk_update import SqliteBulkUpdates
from workron.store.types import SubmittedRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from workron.core.plan import Identity, Plan
    from workron.store.sqlite.engine import Transaction
    from workron.store.types import DeleteRefusal


class SqliteSubmitStore(SqliteBulkUpdates, api.SubmitStore):
    """`api.SubmitStore`."""

    async def submit(
        self, plans: Sequence[Plan], *, supersedes: bool = False
    ) -> Sequence[SubmittedRun]:
        bases = [ids.mint_base(self._clock.now(), self._rng) for _ in plans]
        return await self._write_and_wake(
            partial(_submit, plans=plans, bases=bases, supersedes=supersedes)
        )

    async def delete_run(self, run: JobId) -> DeleteRefusal | None:
        refusal = await self._write(partial(deletion.begin, run=run))
        while refusal is None and not await self._write(partial(deletion.step, run=run)):
            pass
        return refusal

    async def ensure_pool(
        self, namespace: str, name: str, *, lease_seconds: float | None = None
    ) -> str:
        token = f"{self._rng.getrandbits(256):064x}"

        def work(tx: Transaction) -> None:
            pool = pools.ensure_pool(tx, namespace, name)
            pools.add_token(tx, pool, token, lease_seconds, is_granted=False)

        await self._write(work)
        return token


@dataclass(frozen=True, slots=True)
class _StoredPlan:
    plan: Plan
    run: JobId
    last: JobId

    @property
    def range(self) -> dict[str, int]:
        """Its ids as parameters."""
        return {"run": self.run, "last": self.last}

    @property
    def name(self) -> dict[str, str]:
        """Its name as parameters."""
        return _name_of(self.plan.identity)


def _name_of(identity: Identity) -> dict[str, str]:
    return {"namespace": identity.namespace, "kind": identity.kind, "name": identity.name}


def _submit(
    tx: Transaction, plans: Sequence[Plan], bases: Sequence[JobId], *, supersedes: bool
) -> list[SubmittedRun]:
    tx.clear()
    submitted = []
    stored_plans = []
    for plan, base in zip(plans, bases, strict=True):
        existing = _find_existing(tx, plan, supersedes=supersedes)
        if existing is None:
            stored = _insert_plan(tx, plan, base)
            stored_plans.append(stored)
            submitted.append(SubmittedRun(stored.run, is_new=True, is_suspended=plan.is_suspended))
        else:
            submitted.append(
                SubmittedRun(existing["id"], is_new=False, is_suspended=bool(existing["suspended"]))
            )
    # All names of this submission exist only now.
    for stored in stored_plans:
        _link_run(tx, stored)
    for stored in stored_plans:
        _reject_cycle(tx, stored.run)
    completion.update_downstreams(tx)
    return submitted


def _find_existing(tx: Transaction, plan: Plan, *, supersedes: bool) -> Any:
    """Return the run that this plan repeats; None for a new one."""
    known = tx.row("submit.known", uid=str(plan.identity.uid))
    unfinished = tx.row("submit.unfinished", **_name_of(plan.identity))
    digest = unfinished and unfinished["digest"]
    is_cancelled = bool(unfinished and unfinished["cancelled"])
    if known is None and repeats(plan, digest, is_cancelled=is_cancelled, supersedes=supersedes):
        return unfinished
    return known


def _insert_plan(tx: Transaction, plan: Plan, base: JobId) -> _StoredPlan:
    """Insert a plan with ids from `base` on, or after existing runs with these ids."""
    last = JobId(base + len(plan.nodes) - 1)
    while (other := tx.row("submit.overlapping", run=base, last=last)) is not None:
        base, last = JobId(other["last"] + 1), JobId(other["last"] + len(plan.nodes))
    stored = _StoredPlan(plan, base, last)
    tx.fill("submit.add_specs", ((base + number, text) for number, text in plan.encode_specs()))
    tx.run(
        "submit.add_run",
        uid=str(plan.identity.uid),
        digest=plan.digest(),
        metadata=payloads.to_json(plan.metadata),
        suspended=plan.is_suspended,
        priority=plan.priority,
        finally_from=plan.finally_from and base + plan.finally_from,
        fail_fast=plan.is_fail_fast,
        generation=plan.generation,
        **stored.name,
        **stored.range,
    )
    tx.run("submit.set_name", run=base, **stored.name)
    tx.fill("submit.add_jobs", _job_rows(stored, _job_columns(tx, plan)))
    edges = sorted(plan.edges, key=attrgetter("upstream"))
    tx.fill(
        "submit.add_edges",
        ((base + edge.upstream, base + edge.downstream, edge.condition) for edge in edges),
    )
    tx.fill("submit.add_deadlines", _deadline_rows(stored, tx.now))
    tx.fill("submit.add_waiting", _waiting_rows(stored))
    namespace = plan.identity.namespace
    tx.fill(
        "submit.add_external_dependencies",
        (
            (base + one.downstream, namespace, one.kind, one.name, one.condition)
            for one in plan.external
        ),
    )
    tx.run("submit.select_empty_groups", **stored.range)
    tx.run("submit.select_unblocked_jobs", **stored.range)
    return stored


def _job_columns(tx: Transaction, plan: Plan) -> list[tuple[Any, ...]]:
    """Return for each spec the columns that all its jobs have in common."""
    names = {terms.pool for terms in plan.terms}
    known = {name: pools.ensure_pool(tx, plan.identity.namespace, name) for name in names}
    return [
        (
            known[terms.pool],
            terms.max_losses,
            None if terms.start_after is None else engine.to_micros(terms.start_after),
            terms.needs_proof,
            terms.max_failures,
        )
        for terms in plan.terms
    ]


def _job_rows(stored: _StoredPlan, columns: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    run, priority = stored.run, stored.plan.priority
    for job, node in enumerate(stored.plan.nodes, start=run):
        pool, *terms = columns[node.spec]
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
            *terms,
        )


def _deadline_rows(stored: _StoredPlan, now: int) -> Iterator[tuple[int, int]]:
    for job, node in enumerate(stored.plan.nodes, start=stored.run):
        seconds = stored.plan.terms[node.spec].deadline_seconds
        if seconds is not None and node.kind in KINDS_WITH_DEADLINE:
            yield job, now + engine.seconds_to_micros(seconds)


def _waiting_rows(stored: _StoredPlan) -> Iterator[tuple[int, int, bool, int]]:
    plan = stored.plan
    for job, node in enumerate(plan.nodes, start=stored.run):
        is_suspended = plan.is_suspended and node.kind is Kind.JOB
        if node.upstreams or is_suspended or node.kind is not Kind.JOB:
            yield job, node.upstreams + is_suspended, is_suspended, plan.priority


def _link_run(tx: Transaction, stored: _StoredPlan) -> None:
    """Add edges to the upstreams that exist, and from the jobs that wait for this name."""
    if tx.run("submit.select_new_edges", **stored.range, **stored.name):
        tx.run("submit.insert_new_edges")
        tx.run("submit.count_ended_upstreams")
        tx.run("submit.delete_external_dependencies", **stored.range, **stored.name)
        tx.run("clear_scratch.new_edge")


def _reject_cycle(tx: Transaction, run: JobId) -> None:
    """Raise CycleError if a new run waits for itself, directly or through other runs."""
    rows = tx.rows("submit.dependent_runs", run=run)
    if all(row["downstream"] != run for row in rows):
        return
    runs = {row["downstream"]: row for row in rows}
    cycle = [runs[one] for one in _shortest_cycle(rows, run)]
    names = " -> ".join(one["name"] for one in cycle)
    message = f"jobs wait for each other: {names}; remove one of these dependencies"
    raise errors.CycleError(message, [UUID(one["uid"]) for one in cycle])


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

"""Submit: from manifests to acknowledged runs, all of them or none.

`plan` checks the manifests and reads nothing else; `submit` stores the plans. Submitting the same
manifests again is harmless: an unfinished run of the same name and content is acknowledged, and
suspended, resumed or cancelled as its manifest says now.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from workron.core import errors, ids, planner, trace_context
from workron.core.model.job import Job
from workron.core.model.workerpool import WorkerPool
from workron.core.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from workron.core.clock import Rng
    from workron.core.ids import JobId
    from workron.core.manifest.load import Manifest
    from workron.core.model.workflow import Workflow
    from workron.core.plan import Identity, Plan
    from workron.store.api import ReadStore, SubmitStore
    from workron.store.types import SubmittedRun


@dataclass(frozen=True, slots=True)
class Request:
    """The plans and pools of a set of manifests."""

    plans: Sequence[Plan]
    cancelled: AbstractSet[UUID]
    """The uids of plans whose manifest says `cancel: true`."""
    pools: AbstractSet[tuple[str, str]]
    """Namespace and name of each WorkerPool. Only the controller acts on one: a pool that a job
    names is stored with the job, and a token is made when a worker needs it."""
    places: Mapping[UUID, str]
    """File and line of the manifest of each plan."""

    def within(self, parent: str | None) -> Request:
        """Return the request with this TRACEPARENT for every job that does not set one.

        It is not content: the same manifests submitted in another trace are the same runs.
        """
        if parent is None or trace_context.trace_id(parent) is None:
            return self
        plans = [dataclasses.replace(one, traceparent=parent) for one in self.plans]
        return dataclasses.replace(self, plans=plans)

    def as_submitted(self, one: Plan) -> Plan:
        """Return a plan as it is stored: suspended if it is about to be cancelled."""
        is_cancelled = one.identity.uid in self.cancelled
        return dataclasses.replace(one, is_suspended=True) if is_cancelled else one

    @property
    def wanted_pools(self) -> AbstractSet[tuple[str, str]]:
        """Namespace and name of each pool that a command names."""
        return {
            (plan.identity.namespace, plan.terms[spec].pool)
            for plan in self.plans
            for spec in {node.spec for node in plan.nodes if node.kind is Kind.JOB}
        }


class Effect(Enum):
    """The change that submitting a manifest made."""

    CREATED = auto()
    NONE = auto()
    """An unfinished run of the same name and content continues."""
    SUSPENDED = auto()
    RESUMED = auto()
    CANCELLED = auto()


@dataclass(frozen=True, slots=True)
class Submission:
    """One run that the store has acknowledged."""

    run: JobId
    identity: Identity
    effect: Effect

    @property
    def is_existing(self) -> bool:
        """Return whether the run existed before and is not cancelled."""
        return self.effect not in {Effect.CREATED, Effect.CANCELLED}


def plan(manifests: Iterable[Manifest], rng: Rng) -> Request:
    """Check all manifests; ManifestError names every one whose tasks do not form a DAG."""
    plans: list[Plan] = []
    cancelled: set[UUID] = set()
    pools: set[tuple[str, str]] = set()
    places: dict[UUID, str] = {}
    problems: list[str] = []
    for manifest in manifests:
        resource = manifest.resource
        if isinstance(resource, WorkerPool):
            pools.add((resource.metadata.namespace, resource.metadata.name or ""))
            continue
        try:
            plans.append(_plan_one(resource, ids.mint_uuid(rng)))
        except errors.GraphError as error:
            problems.append(f"{manifest.place(*error.path)}: {error}")
            continue
        uid = plans[-1].identity.uid
        places[uid] = manifest.place()
        if resource.spec.cancel:
            cancelled.add(uid)
    if problems:
        raise errors.ManifestError(problems)
    return Request(plans, cancelled, pools, places)


def _plan_one(resource: Job | Workflow, uid: UUID) -> Plan:
    if isinstance(resource, Job):
        return planner.plan_job(resource, uid)
    return planner.plan_workflow(resource, uid)


async def submit(store: SubmitStore, request: Request) -> Sequence[Submission]:
    """Store every plan or none; the answer means that they are durable."""
    plans = [request.as_submitted(one) for one in request.plans]
    answers = await _store(store, request, plans) if plans else ()
    return [
        Submission(answer.run, one.identity, await _apply(store, request, one, answer))
        for one, answer in zip(plans, answers, strict=True)
    ]


async def _store(
    store: SubmitStore, request: Request, plans: Sequence[Plan]
) -> Sequence[SubmittedRun]:
    try:
        return await store.submit(plans)
    except errors.CycleError as error:
        places = [
            f"{request.places[one.identity.uid]}: {one.identity.name}"
            for one in plans
            if one.identity.uid in error.uids
        ]
        raise errors.CycleError("\n".join([str(error), *places]), error.uids) from None


async def _apply(store: SubmitStore, request: Request, plan: Plan, found: SubmittedRun) -> Effect:
    """Cancel the run, or suspend or resume an existing one, as its manifest says."""
    if plan.identity.uid in request.cancelled:
        await store.cancel(found.run)
        return Effect.CANCELLED
    if found.is_new:
        return Effect.CREATED
    if found.is_suspended == plan.is_suspended:
        return Effect.NONE
    if plan.is_suspended:
        return Effect.SUSPENDED if await store.suspend(found.run) else Effect.NONE
    return Effect.RESUMED if await store.resume(found.run) else Effect.NONE


class MissingUpstream(NamedTuple):
    """An upstream that is in none of the files."""

    downstream: Identity
    kind: Kind
    name: str


def missing_upstreams(plans: Sequence[Plan]) -> Iterator[MissingUpstream]:
    """Return every upstream that is not among the plans."""
    given = {(one.identity.namespace, one.identity.kind, one.identity.name) for one in plans}
    for plan in plans:
        for one in plan.external:
            if (plan.identity.namespace, one.kind, one.name) not in given:
                yield MissingUpstream(plan.identity, one.kind, one.name)


def refuse_missing_upstreams(plans: Sequence[Plan]) -> None:
    """Raise InputError for what could never end in a store that no other process can reach."""
    problems = [
        f"{one.downstream.kind} {one.downstream.name!r} depends on {one.kind} {one.name!r}, which"
        " is in none of the files; add its file"
        for one in missing_upstreams(plans)
    ]
    problems += [
        f"{plan.identity.kind} {plan.identity.name!r} is suspended, and no other process can resume"
        " it in a store in memory; remove `suspend: true`"
        for plan in plans
        if plan.is_suspended
    ]
    if problems:
        raise errors.InputError("\n".join(problems))


async def missing_upstream_notes(reader: ReadStore, plans: Sequence[Plan]) -> list[str]:
    """Return a line for each upstream that is not in the store either, and each suspended run."""
    lines = [
        f"{one.downstream.name} waits for {one.kind} {one.name!r}, which is not in the store yet"
        for one in missing_upstreams(plans)
        if await reader.find_run(one.downstream.namespace, one.kind, one.name) is None
    ]
    lines += [
        f"{plan.identity.name} is suspended; to resume it, submit its file without `suspend: true`"
        for plan in plans
        if plan.is_suspended
    ]
    return lines

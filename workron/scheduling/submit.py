"""Submit: from manifests to acknowledged runs, all of them or none.

Called by `workron run`, `workron submit` and `workron validate`; its plan alone by `workron graph`.
"""

from __future__ import annotations

import dataclasses
import re
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
    """What a set of manifests asks for."""

    plans: Sequence[Plan]
    cancelled: AbstractSet[UUID]
    """Whose manifest says `cancel: true`."""
    pools: AbstractSet[tuple[str, str]]
    """Namespace and name of each WorkerPool. Only a cluster makes something of them: a pool that a
    job names is stored with the job, and a token is minted where a worker is given it."""
    places: Mapping[UUID, str]
    """Where the manifest of each plan stands, file and line."""

    def within(self, parent: str | None) -> Request:
        """Give the same for jobs that belong to a trace, where they name none themselves.

        It is no content of theirs: the same manifests, submitted within another one, are the same.
        """
        if parent is None or trace_context.trace_id(parent) is None:
            return self
        plans = [dataclasses.replace(one, specs=one.specs.within(parent)) for one in self.plans]
        return dataclasses.replace(self, plans=plans)

    def asked(self, one: Plan) -> Plan:
        """Give a plan as it is submitted: what is cancelled next must not begin before that."""
        is_cancelled = one.identity.uid in self.cancelled
        return dataclasses.replace(one, is_suspended=True) if is_cancelled else one

    @property
    def wanted_pools(self) -> AbstractSet[tuple[str, str]]:
        """Namespace and name of each pool that a command asks for."""
        return {
            (plan.identity.namespace, plan.terms[spec].pool)
            for plan in self.plans
            for spec in {node.spec for node in plan.nodes if node.kind is Kind.JOB}
        }


class Effect(Enum):
    """What a manifest has changed."""

    BEGUN = auto()
    NONE = auto()
    """An unfinished run of the same name and content was there, and goes on."""
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
    def is_going_on(self) -> bool:
        """Whether a run was there before, and goes on or rests."""
        return self.effect not in {Effect.BEGUN, Effect.CANCELLED}


def plan(manifests: Iterable[Manifest], rng: Rng) -> Request:
    """Check all manifests; ManifestError names every one whose tasks form no DAG."""
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
            plans.append(_flatten(resource, ids.mint_uuid(rng)))
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


async def submit(door: SubmitStore, request: Request) -> Sequence[Submission]:
    """Store everything or nothing, and answer when it is safe."""
    plans = [request.asked(one) for one in request.plans]
    answers = await _submit(door, request, plans) if plans else ()
    return [
        Submission(answer.run, one.identity, await _obey(door, request, one, answer))
        for one, answer in zip(plans, answers, strict=True)
    ]


async def _submit(
    door: SubmitStore, request: Request, plans: Sequence[Plan]
) -> Sequence[SubmittedRun]:
    try:
        return await door.submit(plans)
    except errors.GraphError as error:
        # The store knows names alone; a name has no blank in it.
        words = set(re.split(r"[\s;,]+", str(error)))
        met = [one for one in plans if one.identity.name in words]
        places = [f"{request.places[one.identity.uid]}: {one.identity.name}" for one in met]
        raise errors.GraphError("\n".join([str(error), *places])) from None


async def _obey(door: SubmitStore, request: Request, wanted: Plan, found: SubmittedRun) -> Effect:
    """Cancel it, or suspend or resume what is there already, as its manifest says now."""
    if wanted.identity.uid in request.cancelled:
        await door.cancel(found.run)
        return Effect.CANCELLED
    if found.is_new:
        return Effect.BEGUN
    if found.is_suspended == wanted.is_suspended:
        return Effect.NONE
    if wanted.is_suspended:
        return Effect.SUSPENDED if await door.suspend(found.run) else Effect.NONE
    return Effect.RESUMED if await door.resume(found.run) else Effect.NONE


def _flatten(resource: Job | Workflow, uid: UUID) -> Plan:
    if isinstance(resource, Job):
        return planner.plan_job(resource, uid)
    return planner.plan_workflow(resource, uid)


class MissingUpstream(NamedTuple):
    """An upstream that is in none of the files."""

    downstream: Identity
    kind: Kind
    name: str


def missing_upstreams(plans: Sequence[Plan]) -> Iterator[MissingUpstream]:
    """Name every upstream that the plans do not bring themselves."""
    brought = {_key(plan.identity) for plan in plans}
    for plan in plans:
        for one in plan.external:
            if (plan.identity.namespace, one.kind, one.name) not in brought:
                yield MissingUpstream(plan.identity, one.kind, one.name)


def refuse_missing_upstreams(plans: Sequence[Plan]) -> None:
    """Raise InputError for what could never end where nobody else can do anything."""
    problems = [
        f"{one.downstream.kind} {one.downstream.name!r} depends on {one.kind} {one.name!r}, which"
        " is in none of the files, and nobody else can bring it to a store in memory"
        for one in missing_upstreams(plans)
    ]
    problems += [
        f"{plan.identity.kind} {plan.identity.name!r} is suspended, and nobody can resume it in a"
        " store in memory: take out `suspend: true`"
        for plan in plans
        if plan.is_suspended
    ]
    if problems:
        raise errors.InputError("\n".join(problems))


async def missing_upstream_notes(reader: ReadStore, plans: Sequence[Plan]) -> list[str]:
    """Say what will be waited for that is not in the store either."""
    lines = [
        f"{one.downstream.name} waits for {one.kind} {one.name!r}, which is not in the store yet"
        for one in missing_upstreams(plans)
        if await reader.find_run(one.downstream.namespace, one.kind, one.name) is None
    ]
    lines += [
        f"{plan.identity.name} is suspended: it waits until its file is submitted again"
        " without `suspend: true`"
        for plan in plans
        if plan.is_suspended
    ]
    return lines


def _key(identity: Identity) -> tuple[str, Kind, str]:
    return identity.namespace, identity.kind, identity.name

"""Submit: from manifests to acknowledged roots, all of them or none.

Called by `workron run`, `workron submit` and `workron validate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from workron.core import errors, expand, ids
from workron.core.model.job import Job
from workron.core.model.pool import WorkerPool
from workron.core.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from workron.core.ids import JobId
    from workron.core.manifest.read import Manifest
    from workron.core.model.workflow import Workflow
    from workron.core.plan import Identity, Plan
    from workron.core.ports import Rng
    from workron.store.protocol import SubmitDoor, Submitted


@dataclass(frozen=True, slots=True)
class Request:
    """What a set of manifests asks for."""

    plans: Sequence[Plan]
    cancelled: AbstractSet[UUID]
    """Whose manifest says `cancel: true`."""
    pools: AbstractSet[tuple[str, str]]
    """Namespace and name of each WorkerPool. Only a cluster makes something of them: a pool that a
    job names is stored with the job, and a token is minted where a worker is given it."""

    @property
    def wanted_pools(self) -> AbstractSet[tuple[str, str]]:
        """Namespace and name of each pool that a command asks for."""
        return {
            (plan.identity.namespace, plan.specs[spec].terms.pool)
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


@dataclass(frozen=True, slots=True)
class Submission:
    """One root that the store has acknowledged."""

    root: JobId
    identity: Identity
    effect: Effect


def plan(manifests: Iterable[Manifest], rng: Rng) -> Request:
    """Check all manifests; ManifestError names every one whose tasks form no DAG."""
    plans: list[Plan] = []
    cancelled: set[UUID] = set()
    pools: set[tuple[str, str]] = set()
    problems: list[str] = []
    for manifest in manifests:
        resource = manifest.resource
        if isinstance(resource, WorkerPool):
            pools.add((resource.metadata.namespace, resource.metadata.name or ""))
            continue
        try:
            plans.append(_flatten(resource, ids.mint_uuid(rng)))
        except errors.GraphError as error:
            problems.append(f"{manifest.place()}: {error}")
            continue
        if resource.spec.cancel:
            cancelled.add(plans[-1].identity.uid)
    if problems:
        raise errors.ManifestError(problems)
    return Request(plans, cancelled, pools)


async def submit(door: SubmitDoor, request: Request) -> Sequence[Submission]:
    """Store everything or nothing, and answer when it is safe."""
    answers = await door.submit(request.plans) if request.plans else ()
    submissions = [
        Submission(answer.root, one.identity, await _obey(door, one, answer))
        for one, answer in zip(request.plans, answers, strict=True)
    ]
    for one in submissions:
        if one.identity.uid in request.cancelled:
            await door.cancel(one.root)
    return submissions


async def _obey(door: SubmitDoor, wanted: Plan, found: Submitted) -> Effect:
    """Suspend or resume what is there already, as its manifest says now."""
    if found.is_new:
        return Effect.BEGUN
    if found.is_held == wanted.is_suspended:
        return Effect.NONE
    if wanted.is_suspended:
        return Effect.SUSPENDED if await door.hold(found.root) else Effect.NONE
    return Effect.RESUMED if await door.resume(found.root) else Effect.NONE


def _flatten(resource: Job | Workflow, uid: UUID) -> Plan:
    if isinstance(resource, Job):
        return expand.plan_job(resource, uid)
    return expand.plan_workflow(resource, uid)

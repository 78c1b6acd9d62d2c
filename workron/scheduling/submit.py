"""Submit: from manifests to acknowledged runs, all of them or none; and cancel.

`plan` checks the manifests and reads nothing else; `submit` stores the plans. Submitting the same
manifests again is harmless: an unfinished run of the same name and content is acknowledged, and
suspended, resumed or cancelled as its manifest says now.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from workron.core import errors, ids, planner, trace_context
from workron.core.model.job import Job
from workron.core.model.workerpool import WorkerPool
from workron.core.plan import Kind
from workron.store.types import DeleteRefusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from workron.core.clock import Rng
    from workron.core.ids import JobId
    from workron.core.manifest.load import Manifest
    from workron.core.plan import Identity, Plan
    from workron.store.api import ReadStore, Store, SubmitStore
    from workron.store.types import RunRow, SubmittedRun


_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class Request:
    """The plans and pools of a set of manifests."""

    plans: Sequence[Plan]
    cancelled: Mapping[UUID, bool]
    """The uids of plans whose manifest says `cancel: true`, and whether it says `forceCancel`."""
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

    @property
    def wanted_pools(self) -> AbstractSet[tuple[str, str]]:
        """Namespace and name of each pool that a command names."""
        return {
            (plan.identity.namespace, plan.terms[spec].pool)
            for plan in self.plans
            for spec in {node.spec for node in plan.nodes if node.kind is Kind.JOB}
        }


class SubmitEffect(StrEnum):
    """The change that submitting a manifest made, as users read it."""

    CREATED = "submitted"
    NONE = "unchanged: already submitted"
    SUSPENDED = "suspended: running jobs finish, no new ones start"
    RESUMED = "resumed"
    CANCELLED = "cancelled"


class Submission(NamedTuple):
    """One run that the store has acknowledged."""

    run: JobId
    identity: Identity
    effect: SubmitEffect

    @property
    def is_existing(self) -> bool:
        """Whether the run existed before and is not cancelled."""
        return self.effect not in {SubmitEffect.CREATED, SubmitEffect.CANCELLED}


def plan(manifests: Iterable[Manifest], rng: Rng, *, has_caller: bool = False) -> Request:
    """Check all manifests; ManifestError names every one whose tasks do not form a DAG.

    With `has_caller`, this process also runs the jobs, and has the values for `fromEnv`.
    """
    plans: list[Plan] = []
    cancelled: dict[UUID, bool] = {}
    pools: set[tuple[str, str]] = set()
    places: dict[UUID, str] = {}
    problems: list[str] = []
    for manifest in manifests:
        resource = manifest.resource
        if isinstance(resource, WorkerPool):
            pools.add((resource.metadata.namespace, resource.metadata.name or ""))
            continue
        uid = ids.mint_uuid(rng)
        try:
            if isinstance(resource, Job):
                plans.append(planner.plan_job(resource, uid, has_caller=has_caller))
            else:
                plans.append(planner.plan_workflow(resource, uid, has_caller=has_caller))
        except errors.SpecError as error:
            problems.append(f"{manifest.place(*error.path)}: {error}")
            continue
        places[uid] = manifest.place()
        if resource.spec.is_cancelled:
            cancelled[uid] = resource.spec.is_forced
    if problems:
        raise errors.ManifestError(problems)
    return Request(plans, cancelled, pools, places)


async def submit(store: SubmitStore, request: Request) -> Sequence[Submission]:
    """Store every plan or none; the answer means that they are durable."""
    # A run that is about to be cancelled is stored suspended, so that none of its jobs starts.
    plans = [
        dataclasses.replace(one, is_suspended=True)
        if one.identity.uid in request.cancelled
        else one
        for one in request.plans
    ]
    try:
        answers = await store.submit(plans) if plans else ()
    except errors.CycleError as error:
        places = [
            f"{request.places[one.identity.uid]}: {one.identity.name}"
            for one in plans
            if one.identity.uid in error.uids
        ]
        raise errors.CycleError("\n".join([str(error), *places]), error.uids) from None
    return [
        Submission(answer.run, one.identity, await _apply(store, request, one, answer))
        for one, answer in zip(plans, answers, strict=True)
    ]


async def _apply(
    store: SubmitStore, request: Request, plan: Plan, found: SubmittedRun
) -> SubmitEffect:
    """Cancel the run, or suspend or resume an existing one, as its manifest says."""
    force = request.cancelled.get(plan.identity.uid)
    if force is not None:
        await store.cancel(found.run, force=force)
        return SubmitEffect.CANCELLED
    if found.is_new:
        return SubmitEffect.CREATED
    if found.is_suspended == plan.is_suspended:
        return SubmitEffect.NONE
    if plan.is_suspended:
        return SubmitEffect.SUSPENDED if await store.suspend(found.run) else SubmitEffect.NONE
    return SubmitEffect.RESUMED if await store.resume(found.run) else SubmitEffect.NONE


async def cancel(store: Store, run: RunRow, *, force: bool = False) -> None:
    """Cancel a run; StateError if it had ended before.

    None of its jobs starts any more but those of `finally`; `force`, or a second call, cancels
    these, too. A worker learns that it has to stop a job in the answer to its next heartbeat.
    """
    if not await store.cancel(run.run, force=force or run.is_cancelled):
        raise errors.StateError(f"{run.kind} {run.name!r} has ended; it cannot be cancelled")
    # A store without a maintainer propagates nothing, and `workron wait` would never return.
    while await store.propagate(_BATCH):
        pass


async def delete(store: SubmitStore, run: RunRow) -> None:
    """Delete an ended run with all its jobs; StateError says why it must stay."""
    refusal = await store.delete_run(run.run)
    if refusal is not None:
        raise errors.StateError(f"{run.kind} {run.name!r} {_KEPT[refusal]}")


_KEPT: Final[Mapping[DeleteRefusal, str]] = {
    DeleteRefusal.UNFINISHED: "has not ended; to cancel it, use `workron cancel`",
    DeleteRefusal.NEEDED: "is needed: an unfinished job of another run depends on it",
    DeleteRefusal.OWNED: (
        "was made from a custom resource, from which the controller would run it again; delete that"
        " object with kubectl"
    ),
}


def _missing_upstreams(plans: Sequence[Plan]) -> Iterator[tuple[Identity, Kind, str]]:
    """Return each upstream that is not among the plans: its downstream, its kind and name."""
    given = {(one.identity.namespace, one.identity.kind, one.identity.name) for one in plans}
    for plan in plans:
        # Each element of an array has the same.
        for kind, name in dict.fromkeys((one.kind, one.name) for one in plan.external):
            if (plan.identity.namespace, kind, name) not in given:
                yield plan.identity, kind, name


def refuse_missing_upstreams(plans: Sequence[Plan]) -> None:
    """Raise InputError for what could never end in a store that no other process can reach."""
    problems = [
        f"{downstream.kind} {downstream.name!r} depends on {kind} {name!r}, which is in none of the"
        " files; add its file"
        for downstream, kind, name in _missing_upstreams(plans)
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
        f"{downstream.name} waits for {kind} {name!r}, which is not in the store yet"
        for downstream, kind, name in _missing_upstreams(plans)
        if await reader.find_run(downstream.namespace, kind, name) is None
    ]
    lines += [
        f"{plan.identity.name} is suspended; to resume it, submit its file without `suspend: true`"
        for plan in plans
        if plan.is_suspended
    ]
    return lines

"""The store's methods for workers: each is one transaction, and rejects late calls."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tests.protocol import jobs, observation
from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Guard, Rules
from tests.protocol.state import (
    NO_ROW,
    Call,
    Claim,
    Place,
    Row,
    Shared,
    Stage,
    Verb,
    Worker,
    with_job,
)


class Reply(StrEnum):
    COUNTED = "counted"
    GRANTED = "granted"
    NOTHING = "nothing ready"
    ACCEPTED = "accepted"
    ALREADY = "already"
    STALE = "stale"
    UNKNOWN = "no such session"
    REGISTERED = "registered"


class Effect(NamedTuple):
    """The effect and the answer of a call."""

    shared: Shared
    worker: Worker
    reply: Reply
    marks: tuple[RareBranch, ...] = ()
    claim: Claim | None = None
    """The claim that was granted, now or by the first call."""
    is_new: bool = False
    wrote: Claim | None = None
    is_reap: bool = False


def answer(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    """Execute one request."""
    match call.verb:
        case Verb.HEARTBEAT:
            return _heartbeat(shared, worker, call, rules)
        case Verb.CLAIM:
            return _claim(shared, worker, call, rules)
        case Verb.COMPLETE:
            return _complete(shared, worker, call, rules)
        case Verb.RELEASE:
            return _release(shared, worker, call, rules)
        case Verb.REGISTER:
            return _register(shared, worker, call, rules)


def is_known(worker: Worker, session: int) -> bool:
    return worker.row.is_live and worker.row.session == session


def first_ready(shared: Shared) -> int | None:
    ready = (index for index, job in enumerate(shared.jobs) if job.place is Place.READY)
    return next(ready, None)


def grant(shared: Shared, worker: Worker, index: int, claim_id: int, rules: Rules) -> Effect:
    """Move a job to this worker under a new fence."""
    fence = jobs.next_fence(shared, index, rules)
    claim = Claim(index, claim_id, fence)
    marks = (RareBranch.FENCE_LEAPT,) if fence > shared.jobs[index].fence + 1 else ()
    highest = list(shared.highest)
    highest[index] = max(highest[index], fence)
    shared = with_job(shared, index, jobs.granted(shared.jobs[index], fence))
    row = worker.row._replace(claims=(*worker.row.claims, claim))
    return Effect(
        shared._replace(highest=tuple(highest)),
        worker._replace(row=row),
        Reply.GRANTED,
        marks,
        claim,
        is_new=True,
    )


class Reaped(NamedTuple):
    """The state after a reap: the jobs have moved, the row is deleted."""

    shared: Shared
    worker: Worker
    marks: tuple[RareBranch, ...] = ()


def reap_worker(shared: Shared, worker: Worker, *, is_proven: bool, rules: Rules) -> Reaped:
    """Delete a worker and requeue its claims; `is_proven`: none of its commands can be running."""
    row, marks = worker.row, tuple[RareBranch, ...]()
    removed = observation.not_observed(worker)._replace(row=NO_ROW)
    if not rules.keeps(Guard.WHOLE_REAP):
        return Reaped(shared, removed)
    waiting = () if is_proven else row.awaiting
    for claim in row.claims:
        job, more = jobs.lost(shared.jobs[claim.job], is_proven=is_proven, rules=rules)
        shared, marks = with_job(shared, claim.job, job), (*marks, *more)
        waiting += (claim.job,) if job.place is Place.AWAITING else ()
    if is_proven:
        return _unblock(shared, removed, row.awaiting, marks)
    return Reaped(shared, removed._replace(row=NO_ROW._replace(awaiting=waiting)), marks)


def _unblock(
    shared: Shared, removed: Worker, awaiting: tuple[int, ...], marks: tuple[RareBranch, ...]
) -> Reaped:
    """Unblock the jobs that waited for proof that this worker is dead."""
    for index in awaiting:
        shared = with_job(shared, index, jobs.proven(shared.jobs[index]))
        marks = (*marks, RareBranch.AWAITED_PROOF)
    return Reaped(shared, removed, marks)


def _heartbeat(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    if not is_known(worker, call.session):
        return Effect(shared, worker, Reply.UNKNOWN, (RareBranch.LATE_HEARTBEAT_REJECTED,))
    is_revived = worker.is_expired and not worker.row.has_risen
    marks = (RareBranch.LATE_HEARTBEAT_REVIVED,) if is_revived else ()
    risen = observation.moved(worker._replace(row=worker.row._replace(has_risen=True)), rules)
    return Effect(shared, risen, Reply.COUNTED, marks)


def _claim(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    if not is_known(worker, call.session) and rules.keeps(Guard.LIVE_ROW):
        return Effect(shared, worker, Reply.UNKNOWN, (RareBranch.LATE_CLAIM_REJECTED,))
    same = next((claim for claim in worker.row.claims if claim.id == call.id), None)
    if same is not None and rules.keeps(Guard.SAME_ANSWER):
        return Effect(shared, worker, Reply.GRANTED, (RareBranch.REPEATED_CLAIM,), same)
    index = first_ready(shared)
    if index is None:
        return Effect(shared, worker, Reply.NOTHING)
    return grant(shared, worker, index, call.id, rules)


def _complete(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    claim = _claim_of(call)
    if not is_known(worker, call.session):
        return Effect(shared, worker, Reply.UNKNOWN, (RareBranch.STALE_COMPLETE,))
    if _is_current(shared, worker.row, claim, Guard.CLAIM_ID, rules):
        job, marks = jobs.completed(shared.jobs[claim.job], is_success=call.is_success, rules=rules)
        worker = _reported(_without(worker, claim), claim)
        shared = with_job(shared, claim.job, job)
        return Effect(shared, worker, Reply.ACCEPTED, marks, wrote=claim)
    was_accepted = worker.slot.is_reported and worker.slot.claim == claim
    if was_accepted and rules.keeps(Guard.ALREADY):
        return Effect(shared, worker, Reply.ALREADY, (RareBranch.REPEATED_COMPLETE,))
    return Effect(shared, worker, Reply.STALE, (RareBranch.STALE_COMPLETE,))


def _release(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    claim = _claim_of(call)
    if not is_known(worker, call.session):
        return Effect(shared, worker, Reply.UNKNOWN, (RareBranch.STALE_RELEASE,))
    if not _is_current(shared, worker.row, claim, Guard.CLAIM_ID_AT_RELEASE, rules):
        return Effect(shared, worker, Reply.STALE, (RareBranch.STALE_RELEASE,))
    job, marks = jobs.released(shared.jobs[claim.job], rules)
    shared = with_job(shared, claim.job, job)
    return Effect(shared, _without(worker, claim), Reply.ACCEPTED, marks, wrote=claim)


def _register(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    """A late copy: no agent receives the answer, so no heartbeat follows."""
    if not call.is_of_older_boot or not worker.row.is_live:
        return Effect(shared, worker, Reply.REGISTERED)
    if rules.keeps(Guard.FIRST_HEARTBEAT):
        return Effect(shared, worker, Reply.REGISTERED, (RareBranch.LATE_REGISTER,))
    after, removed, marks = reap_worker(shared, worker, is_proven=True, rules=rules)
    return Effect(after, removed, Reply.REGISTERED, marks, is_reap=True)


def _is_current(shared: Shared, row: Row, claim: Claim, guard: Guard, rules: Rules) -> bool:
    if not rules.keeps(guard):
        return shared.jobs[claim.job].place is Place.RUNNING
    if not rules.keeps(Guard.FENCE_WITH_ID):
        return any(held[:2] == claim[:2] for held in row.claims)
    return claim in row.claims


def _without(worker: Worker, claim: Claim) -> Worker:
    claims = tuple(held for held in worker.row.claims if held.job != claim.job)
    return worker._replace(row=worker.row._replace(claims=claims))


def _reported(worker: Worker, claim: Claim) -> Worker:
    slot = worker.slot
    if slot.claim != claim or slot.stage not in {Stage.SUCCEEDED, Stage.FAILED}:
        return worker
    return worker._replace(slot=slot._replace(is_reported=True))


def _claim_of(call: Call) -> Claim:
    assert call.claim is not None, f"{call.verb} has a claim"
    return call.claim

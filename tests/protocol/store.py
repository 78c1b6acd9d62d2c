"""The store's side of a worker's verbs: each is one transaction, and refuses what came too late."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tests.protocol import jobs, watch
from tests.protocol.rules import Guard, Rules
from tests.protocol.sometimes import Sometimes
from tests.protocol.state import (
    GONE,
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
    BEATEN = "beaten"
    GRANTED = "granted"
    NOTHING = "nothing ready"
    ACCEPTED = "accepted"
    ALREADY = "already"
    STALE = "stale"
    UNKNOWN = "no such session"
    REGISTERED = "registered"


class Effect(NamedTuple):
    """What a verb did, and what it answers."""

    shared: Shared
    worker: Worker
    reply: Reply
    marks: tuple[Sometimes, ...] = ()
    claim: Claim | None = None
    """The claim that was granted, now or when the call came first."""
    is_new: bool = False
    wrote: Claim | None = None
    is_reap: bool = False


def answer(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    """Carry one request out."""
    match call.verb:
        case Verb.BEAT:
            return _beat(shared, worker, call, rules)
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
    marks = (Sometimes.FENCE_LEAPT,) if fence > shared.jobs[index].fence + 1 else ()
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


class Taken(NamedTuple):
    """What is left when a worker was taken back: its jobs have moved, its row has gone."""

    shared: Shared
    worker: Worker
    marks: tuple[Sometimes, ...] = ()


def take_back(shared: Shared, worker: Worker, *, is_proven: bool, rules: Rules) -> Taken:
    """Forget a worker and move what it held; `is_proven`: nothing of it can be running."""
    row, marks = worker.row, tuple[Sometimes, ...]()
    gone = watch.forgotten(worker)._replace(row=GONE)
    if not rules.keeps(Guard.WHOLE_REAP):
        return Taken(shared, gone)
    waiting = () if is_proven else row.awaiting
    for claim in row.claims:
        job, more = jobs.lost(shared.jobs[claim.job], is_proven=is_proven, rules=rules)
        shared, marks = with_job(shared, claim.job, job), (*marks, *more)
        waiting += (claim.job,) if job.place is Place.AWAITING else ()
    if is_proven:
        return _let_go(shared, gone, row.awaiting, marks)
    return Taken(shared, gone._replace(row=GONE._replace(awaiting=waiting)), marks)


def _let_go(
    shared: Shared, gone: Worker, awaiting: tuple[int, ...], marks: tuple[Sometimes, ...]
) -> Taken:
    """The jobs that waited for proof that this worker is dead have it."""
    for index in awaiting:
        shared = with_job(shared, index, jobs.proven(shared.jobs[index]))
        marks = (*marks, Sometimes.AWAITED_PROOF)
    return Taken(shared, gone, marks)


def _beat(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    if not is_known(worker, call.session):
        return Effect(shared, worker, Reply.UNKNOWN, (Sometimes.LATE_BEAT_REFUSED,))
    is_revived = worker.is_ripe and not worker.row.has_risen
    marks = (Sometimes.LATE_BEAT_REVIVED,) if is_revived else ()
    risen = watch.moved(worker._replace(row=worker.row._replace(has_risen=True)), rules)
    return Effect(shared, risen, Reply.BEATEN, marks)


def _claim(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    if not is_known(worker, call.session) and rules.keeps(Guard.LIVE_ROW):
        return Effect(shared, worker, Reply.UNKNOWN, (Sometimes.LATE_CLAIM_REFUSED,))
    same = next((claim for claim in worker.row.claims if claim.id == call.id), None)
    if same is not None and rules.keeps(Guard.SAME_ANSWER):
        return Effect(shared, worker, Reply.GRANTED, (Sometimes.REPEATED_CLAIM,), same)
    index = first_ready(shared)
    if index is None:
        return Effect(shared, worker, Reply.NOTHING)
    return grant(shared, worker, index, call.id, rules)


def _complete(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    claim = _named(call)
    if not is_known(worker, call.session):
        return Effect(shared, worker, Reply.UNKNOWN, (Sometimes.STALE_COMPLETE,))
    if _stands(shared, worker.row, claim, Guard.CLAIM_ID, rules):
        job, marks = jobs.completed(shared.jobs[claim.job], is_success=call.is_success, rules=rules)
        worker = _reported(_without(worker, claim), claim)
        shared = with_job(shared, claim.job, job)
        return Effect(shared, worker, Reply.ACCEPTED, marks, wrote=claim)
    was_accepted = worker.hand.is_reported and worker.hand.claim == claim
    if was_accepted and rules.keeps(Guard.ALREADY):
        return Effect(shared, worker, Reply.ALREADY, (Sometimes.REPEATED_COMPLETE,))
    return Effect(shared, worker, Reply.STALE, (Sometimes.STALE_COMPLETE,))


def _release(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    claim = _named(call)
    if not is_known(worker, call.session):
        return Effect(shared, worker, Reply.UNKNOWN, (Sometimes.STALE_RELEASE,))
    if not _stands(shared, worker.row, claim, Guard.CLAIM_ID_AT_RELEASE, rules):
        return Effect(shared, worker, Reply.STALE, (Sometimes.STALE_RELEASE,))
    job, marks = jobs.released(shared.jobs[claim.job], rules)
    shared = with_job(shared, claim.job, job)
    return Effect(shared, _without(worker, claim), Reply.ACCEPTED, marks, wrote=claim)


def _register(shared: Shared, worker: Worker, call: Call, rules: Rules) -> Effect:
    """A copy that came late: nobody hears the answer, so nobody will beat under it."""
    if not call.is_of_older_boot or not worker.row.is_live:
        return Effect(shared, worker, Reply.REGISTERED)
    if rules.keeps(Guard.FIRST_BEAT):
        return Effect(shared, worker, Reply.REGISTERED, (Sometimes.LATE_REGISTER,))
    after, gone, marks = take_back(shared, worker, is_proven=True, rules=rules)
    return Effect(after, gone, Reply.REGISTERED, marks, is_reap=True)


def _stands(shared: Shared, row: Row, claim: Claim, guard: Guard, rules: Rules) -> bool:
    if not rules.keeps(guard):
        return shared.jobs[claim.job].place is Place.RUNNING
    if not rules.keeps(Guard.FENCE_WITH_ID):
        return any(held[:2] == claim[:2] for held in row.claims)
    return claim in row.claims


def _without(worker: Worker, claim: Claim) -> Worker:
    claims = tuple(held for held in worker.row.claims if held.job != claim.job)
    return worker._replace(row=worker.row._replace(claims=claims))


def _reported(worker: Worker, claim: Claim) -> Worker:
    hand = worker.hand
    if hand.claim != claim or hand.stage not in {Stage.SUCCEEDED, Stage.FAILED}:
        return worker
    return worker._replace(hand=hand._replace(is_reported=True))


def _named(call: Call) -> Claim:
    assert call.claim is not None, f"{call.verb} names the claim that it is about"
    return call.claim

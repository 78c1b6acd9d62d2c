"""An agent's calls about claims: claim, complete, release; each is repeated until it is answered.

A request that arrives is executed at once. The answer to a claim is then in transit, so that time
may pass and the worker may freeze before it arrives; for the other calls the time of the answer
makes no difference, so they are answered at once, or the answer is lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import agent, store
from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Fault, Guard, Rules
from tests.protocol.state import (
    Agent,
    Answer,
    Call,
    Place,
    Shared,
    Slot,
    Stage,
    Verb,
    Worker,
    with_late,
)
from tests.protocol.step import Step, spent

_VERBS = {
    Stage.ASKING: Verb.CLAIM,
    Stage.SUCCEEDED: Verb.COMPLETE,
    Stage.FAILED: Verb.COMPLETE,
    Stage.RELEASING: Verb.RELEASE,
}


def open_call(worker: Worker, rules: Rules) -> Call | None:
    """The request that this agent sends, and repeats until it is answered."""
    slot = worker.slot
    if slot.stage is Stage.STOPPING and not rules.keeps(Guard.KILL_FIRST):
        return Call(Verb.RELEASE, worker.session, claim=slot.claim)
    verb = _VERBS.get(slot.stage)
    if verb is None or (verb is Verb.CLAIM and slot.claim is not None):
        return None
    is_success = slot.stage is Stage.SUCCEEDED
    return Call(verb, worker.session, slot.id, slot.claim, is_success=is_success)


def call(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """The request arrives; its answer arrives too, or is lost."""
    request = open_call(worker, rules)
    if request is None or not _arrives(shared, worker):
        return
    if request.verb is Verb.CLAIM:
        yield from _claim(shared, worker, request, rules)
        return
    effect = store.answer(shared, worker, request, rules)
    step = _step_of(request.verb, effect)
    yield step._replace(worker=_finished(effect))
    after = spent(effect.shared, Fault.LOST_ANSWER, rules)
    if after is not None and effect.reply is store.Reply.ACCEPTED:
        action = f"{step.action}, but the answer is lost"
        yield step._replace(action=action, shared=after, is_fault=True)


def receive_grant(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """The answer to a claim arrives: start the command, unless it is too late."""
    claim, is_asking = worker.slot.claim, worker.slot.stage is Stage.ASKING
    if not is_asking or claim is None or worker.agent is not Agent.UP or worker.is_cut:
        return
    if agent.is_past_deadline(worker, rules) and rules.keeps(Guard.CHECK_AT_START):
        mark = (RareBranch.NOT_STARTED,)
        late = agent.releasing(worker)
        yield Step("receives its claim too late to start", shared, late, marks=mark)
        return
    slot = Slot(
        Stage.RUNNING,
        claim=claim,
        is_fresh=isinstance(worker.heartbeat, Answer),
        is_orphaned=worker.slot.is_orphaned,
    )
    action = f"receives its claim and starts job {claim.job + 1}"
    yield Step(action, shared, worker._replace(slot=slot))
    after = spent(shared, Fault.LOST_ANSWER, rules)
    if after is not None:
        asking = worker._replace(slot=Slot(Stage.ASKING, id=worker.slot.id))
        yield Step("never receives its claim", after, asking, is_fault=True)


def copy(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """A request was sent twice, or its sender gave up: one copy stays in the network."""
    request = open_call(worker, rules)
    if request is None or worker.agent is not Agent.UP:
        return
    after = spent(shared, Fault.LATE_COPY, rules)
    if after is not None:
        late = with_late(worker, request)
        action = f"leaves a copy of its {request.verb} in the network"
        yield Step(action, after, late, is_fault=True)


def copy_arrives(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """Its sender no longer waits for the answer; the store executes it nevertheless."""
    if not shared.is_up:
        return
    for request in worker.late:
        rest = list(worker.late)
        rest.remove(request)
        effect = store.answer(shared, worker._replace(late=tuple(rest)), request, rules)
        step = _step_of(request.verb, effect)._replace(was_answered_stale=False)
        marks = (*step.marks, *_reuse(worker, request, effect))
        yield step._replace(action=f"a late copy arrives: {step.action}", marks=marks)


def _claim(shared: Shared, worker: Worker, request: Call, rules: Rules) -> Iterator[Step]:
    if rules.keeps(Guard.WORKER_LOCK) and rules.keeps(Guard.JOB_LOCK):
        yield _granted(request, store.answer(shared, worker, request, rules))
    elif worker.slot.is_read:
        yield _granted(request, _torn(shared, worker, request, rules))
    elif not store.is_known(worker, request.session) or store.first_ready(shared) is None:
        yield _granted(request, store.answer(shared, worker, request, rules))
    else:
        slot = worker.slot._replace(is_read=True)
        yield Step("claims: the store selects a job", shared, worker._replace(slot=slot))


def _arrives(shared: Shared, worker: Worker) -> bool:
    # The second half of a claim without a lock happens inside the store.
    return agent.can_call(shared, worker) or (shared.is_up and worker.slot.is_read)


def _torn(shared: Shared, worker: Worker, request: Call, rules: Rules) -> store.Effect:
    """The second half of a claim without locks: it relies on what the first half read."""
    has_worker = store.is_known(worker, request.session) or not rules.keeps(Guard.WORKER_LOCK)
    has_job = shared.jobs[0].place is Place.READY or not rules.keeps(Guard.JOB_LOCK)
    if not (has_worker and has_job):
        return store.Effect(shared, worker, store.Reply.NOTHING)
    return store.grant(shared, worker, 0, request.id, rules)


def _granted(request: Call, effect: store.Effect) -> Step:
    worker, claim = effect.worker, effect.claim
    slot = Slot(Stage.ASKING, id=request.id, claim=claim) if claim is not None else Slot()
    if effect.reply is store.Reply.UNKNOWN:
        worker = worker._replace(session=0)
    return _step_of(Verb.CLAIM, effect)._replace(worker=worker._replace(slot=slot))


def _finished(effect: store.Effect) -> Worker:
    """The agent was answered: its slot is free, for any answer."""
    worker = effect.worker
    if effect.reply is store.Reply.UNKNOWN:
        worker = worker._replace(session=0)
    if worker.slot.stage is Stage.STOPPING:
        return worker
    return worker._replace(slot=Slot())


def _step_of(verb: Verb, effect: store.Effect) -> Step:
    claim = effect.claim or effect.wrote
    about = f" (job {claim.job + 1}, id {claim.id}, fence {claim.fence})" if claim else ""
    return Step(
        f"{verb}s{about}: {effect.reply}",
        effect.shared,
        effect.worker,
        marks=effect.marks,
        granted=effect.claim if effect.is_new else None,
        wrote=effect.wrote,
        is_reap=effect.is_reap,
        was_answered_stale=effect.reply is store.Reply.STALE,
    )


def _reuse(worker: Worker, request: Call, effect: store.Effect) -> tuple[RareBranch, ...]:
    is_awaited = worker.slot.stage is Stage.ASKING and worker.slot.id == request.id
    return (RareBranch.REUSED_ID,) if effect.is_new and not is_awaited else ()

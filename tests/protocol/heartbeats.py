"""A heartbeat, its answer, and the effect of the answer on the agent."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import agent, store
from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Fault, Guard, Rules
from tests.protocol.state import (
    Agent,
    Answer,
    Call,
    Claim,
    HeartbeatStatus,
    Shared,
    Slot,
    Stage,
    Verb,
    Worker,
    with_late,
)
from tests.protocol.step import Step, spent

Handled = tuple[Worker, tuple[RareBranch, ...]]


def heartbeat(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """A heartbeat is sent and counted; its answer is in transit."""
    is_due = worker.heartbeat is HeartbeatStatus.DUE and worker.session > 0
    if not is_due or not agent.can_call(shared, worker):
        return
    request = Call(Verb.HEARTBEAT, worker.session)
    effect = store.answer(shared, worker, request, rules)
    sent = effect.worker._replace(
        heartbeat=_answer(shared, effect), slot=worker.slot._replace(is_fresh=False)
    )
    yield Step("sends a heartbeat", shared, sent, marks=effect.marks)
    after = spent(shared, Fault.LATE_COPY, rules)
    if after is not None:
        slow = worker._replace(heartbeat=HeartbeatStatus.DONE, is_reachable=False)
        late = with_late(slow, request)
        yield Step("sends a heartbeat, which is delayed in the network", after, late, is_fault=True)


def receive(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """The answer arrives, or is lost."""
    answer = worker.heartbeat
    if not isinstance(answer, Answer) or worker.agent is not Agent.UP or worker.is_cut:
        return
    after = spent(shared, Fault.LOST_ANSWER, rules)
    if after is not None:
        unanswered = worker._replace(heartbeat=HeartbeatStatus.DONE, is_reachable=False)
        yield Step("never receives the answer to its heartbeat", after, unanswered, is_fault=True)
    if not answer.is_known:
        mark = (RareBranch.SESSION_LOST,)
        yield Step("learns that it was reaped, kills", shared, _without_session(worker), marks=mark)
        return
    age = answer.age if rules.keeps(Guard.SEND_TIME) else 0
    is_prompt = answer.age == 0
    alive = worker._replace(
        heartbeat=HeartbeatStatus.DONE, age=age, is_reachable=worker.is_reachable or is_prompt
    )
    handled, marks = _handle(alive, answer, rules)
    yield Step(
        "receives the answer to its heartbeat", shared, handled, marks=marks, received=answer
    )


def _answer(shared: Shared, effect: store.Effect) -> Answer:
    is_known = effect.reply is store.Reply.COUNTED
    claims = effect.worker.row.claims if is_known else ()
    held = tuple((claim, shared.jobs[claim.job].is_cancelled) for claim in claims)
    return Answer(0, is_known, held)


def _without_session(worker: Worker) -> Worker:
    return worker._replace(session=0, heartbeat=HeartbeatStatus.DONE, slot=Slot())


def _handle(worker: Worker, answer: Answer, rules: Rules) -> Handled:
    if agent.is_executing(worker):
        return _compare(worker, answer, rules)
    unknown = _unknown_claim(worker, answer, rules)
    if unknown is None or not rules.keeps(Guard.LIST_RELEASES):
        return worker, ()
    if worker.slot.stage is Stage.ASKING:
        # Without the guard: the release is sent while the claim call is still open.
        request = Call(Verb.RELEASE, worker.session, claim=unknown)
        return with_late(worker, request), ()
    slot = Slot(Stage.RELEASING, claim=unknown)
    return worker._replace(slot=slot), (RareBranch.RELEASED_BY_LIST,)


def _compare(worker: Worker, answer: Answer, rules: Rules) -> Handled:
    """The running claim is held, cancelled, or lost."""
    slot, held = worker.slot, dict(answer.held)
    assert slot.claim is not None, "a running command has a claim"
    if slot.claim in held:
        is_cancelled = held[slot.claim] and rules.keeps(Guard.CANCEL_BY_HEARTBEAT)
        if not is_cancelled or slot.stage is Stage.STOPPING:
            return worker, ()
        killed = Slot(Stage.FAILED, claim=slot.claim)
        return worker._replace(slot=killed), (RareBranch.CANCEL_MET_COMMAND,)
    if slot.is_fresh:
        return worker, (RareBranch.OLD_LIST,)
    if not rules.keeps(Guard.LIST_KILLS):
        return worker._replace(slot=slot._replace(is_orphaned=False)), ()
    return worker._replace(slot=Slot()), (RareBranch.KILLED_BY_LIST,)


def _unknown_claim(worker: Worker, answer: Answer, rules: Rules) -> Claim | None:
    """A claim that the store counts as this worker's and its idle slot does not know."""
    is_asking = worker.slot.stage is Stage.ASKING and not rules.keeps(Guard.OPEN_CALL)
    if worker.slot.stage is not Stage.IDLE and not is_asking:
        return None
    return next((claim for claim, _ in answer.held), None)

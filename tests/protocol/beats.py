"""A beat, its answer, and what the agent does about what it hears."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import agent, store
from tests.protocol.rules import Fault, Guard, Rules
from tests.protocol.sometimes import Sometimes
from tests.protocol.state import (
    Agent,
    Answer,
    Call,
    Claim,
    Hand,
    Pulse,
    Shared,
    Stage,
    Verb,
    Worker,
    with_late,
)
from tests.protocol.step import Step, spent

Obeyed = tuple[Worker, tuple[Sometimes, ...]]


def beat(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """A beat is sent and taken in; its answer sets off."""
    is_due = worker.beat is Pulse.DUE and worker.session > 0
    if not is_due or not agent.can_call(shared, worker):
        return
    request = Call(Verb.BEAT, worker.session)
    effect = store.answer(shared, worker, request, rules)
    sent = effect.worker._replace(
        beat=_answer(shared, effect), hand=worker.hand._replace(is_fresh=False)
    )
    yield Step("beats", shared, sent, marks=effect.marks)
    after = spent(shared, Fault.LATE_COPY, rules)
    if after is not None:
        slow = worker._replace(beat=Pulse.DONE, is_blameless=False)
        late = with_late(slow, request)
        yield Step("beats; the beat is held up in the network", after, late, is_fault=True)


def hear(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """The answer arrives, or is lost."""
    answer = worker.beat
    if not isinstance(answer, Answer) or worker.agent is not Agent.UP or worker.is_cut:
        return
    after = spent(shared, Fault.LOST_ANSWER, rules)
    if after is not None:
        deaf = worker._replace(beat=Pulse.DONE, is_blameless=False)
        yield Step("never hears the answer to its beat", after, deaf, is_fault=True)
    if not answer.is_known:
        mark = (Sometimes.SESSION_LOST,)
        yield Step("hears that it was reaped, kills", shared, _expelled(worker), marks=mark)
        return
    age = answer.age if rules.keeps(Guard.SEND_TIME) else 0
    is_prompt = answer.age == 0
    alive = worker._replace(beat=Pulse.DONE, age=age, is_blameless=worker.is_blameless or is_prompt)
    obedient, marks = _obey(alive, answer, rules)
    yield Step("hears the answer to its beat", shared, obedient, marks=marks, heard=answer)


def _answer(shared: Shared, effect: store.Effect) -> Answer:
    is_known = effect.reply is store.Reply.BEATEN
    claims = effect.worker.row.claims if is_known else ()
    held = tuple((claim, shared.jobs[claim.job].is_cancelled) for claim in claims)
    return Answer(0, is_known, held)


def _expelled(worker: Worker) -> Worker:
    return worker._replace(session=0, beat=Pulse.DONE, hand=Hand())


def _obey(worker: Worker, answer: Answer, rules: Rules) -> Obeyed:
    if agent.is_executing(worker):
        return _compare(worker, answer, rules)
    strange = _strange(worker, answer, rules)
    if strange is None or not rules.keeps(Guard.LIST_RELEASES):
        return worker, ()
    if worker.hand.stage is Stage.ASKING:
        # Without the guard: the release goes out beside the claim call, which stays open.
        request = Call(Verb.RELEASE, worker.session, claim=strange)
        return with_late(worker, request), ()
    hand = Hand(Stage.RELEASING, claim=strange)
    return worker._replace(hand=hand), (Sometimes.RELEASED_BY_LIST,)


def _compare(worker: Worker, answer: Answer, rules: Rules) -> Obeyed:
    """What runs is held, cancelled, or lost."""
    hand, held = worker.hand, dict(answer.held)
    assert hand.claim is not None, "what runs has a claim"
    if hand.claim in held:
        is_cancelled = held[hand.claim] and rules.keeps(Guard.CANCEL_BY_BEAT)
        if not is_cancelled or hand.stage is Stage.STOPPING:
            return worker, ()
        killed = Hand(Stage.FAILED, claim=hand.claim)
        return worker._replace(hand=killed), (Sometimes.CANCEL_MET_COMMAND,)
    if hand.is_fresh:
        return worker, (Sometimes.OLD_LIST,)
    if not rules.keeps(Guard.LIST_KILLS):
        return worker._replace(hand=hand._replace(is_orphaned=False)), ()
    return worker._replace(hand=Hand()), (Sometimes.KILLED_BY_LIST,)


def _strange(worker: Worker, answer: Answer, rules: Rules) -> Claim | None:
    """A claim that the store counts as this worker's and its idle slot knows nothing of."""
    is_asking = worker.hand.stage is Stage.ASKING and not rules.keeps(Guard.OPEN_CALL)
    if worker.hand.stage is not Stage.IDLE and not is_asking:
        return None
    return next((claim for claim, _ in answer.held), None)

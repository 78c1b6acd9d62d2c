"""A worker's sessions: it registers, and after its death a new boot registers again.

A registration proves that every earlier boot of this worker is dead, because a new one begins
when the commands of the old one have ended. But a request may be delayed, so its arrival proves
nothing: registration and first heartbeat are one step here, and the heartbeat is the proof.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import agent, store
from tests.protocol.rules import Fault, Rules
from tests.protocol.state import Agent, Call, HeartbeatStatus, Row, Shared, Verb, Worker, with_late
from tests.protocol.step import Step, spent


def register(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """Register again; the claims of earlier sessions of this worker are requeued."""
    if worker.session > 0 or not agent.can_call(shared, worker):
        return
    after, removed, marks = store.reap_worker(shared, worker, is_proven=True, rules=rules)
    session = _new_session(worker)
    entered = removed._replace(
        session=session,
        row=Row(session, is_live=True),
        age=0,
        heartbeat=HeartbeatStatus.DONE,
        is_reachable=True,
    )
    yield Step("registers and sends a heartbeat", after, entered, marks=marks)


def copy(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """A delayed registration stays in the network."""
    if worker.session > 0 or worker.agent is not Agent.UP:
        return
    after = spent(shared, Fault.LATE_COPY, rules)
    if after is not None:
        late = with_late(worker, Call(Verb.REGISTER, session=0))
        yield Step("leaves a copy of its registration in the network", after, late, is_fault=True)


def boot(shared: Shared, worker: Worker, _rules: Rules) -> Iterator[Step]:
    """A new boot; it cannot begin before the runner of the old one has killed."""
    if worker.agent is Agent.DEAD and not agent.is_executing(worker):
        late = tuple(
            call._replace(is_of_older_boot=True) if call.verb is Verb.REGISTER else call
            for call in worker.late
        )
        fresh = worker._replace(agent=Agent.UP, session=0, late=late)
        yield Step("boots again", shared, fresh)


def _new_session(worker: Worker) -> int:
    known = {worker.row.session, *(call.session for call in worker.late)}
    if worker.standby is not None:
        known.add(worker.standby.session)
    return next(number for number in range(1, len(known) + 2) if number not in known)

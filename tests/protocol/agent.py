"""The steps of an agent and its runner that need no answer from the store."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import store
from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Fault, Guard, Rules
from tests.protocol.state import Agent, Shared, Slot, Stage, Worker
from tests.protocol.step import Step, spent

_EXECUTING = frozenset({Stage.RUNNING, Stage.STOPPING})


def is_executing(worker: Worker) -> bool:
    """Whether a command of this worker exists, frozen or not."""
    return worker.slot.stage in _EXECUTING


def is_past_deadline(worker: Worker, rules: Rules) -> bool:
    return worker.age >= rules.deadline


def can_call(shared: Shared, worker: Worker) -> bool:
    """Whether a request of this agent reaches the store."""
    return worker.agent is Agent.UP and shared.is_up and not worker.is_cut


def must_kill(worker: Worker, rules: Rules) -> bool:
    """Whether agent or runner has to kill the command before time passes."""
    if not is_executing(worker):
        return False
    if worker.agent is Agent.DEAD and rules.keeps(Guard.RUNNER_FOLLOWS):
        return True
    if rules.outlives_lease or not is_past_deadline(worker, rules):
        return False
    has_agent = worker.agent is Agent.UP and rules.keeps(Guard.AGENT_DEADLINE)
    has_runner = worker.agent not in {Agent.FROZEN, Agent.RESUMED}
    return has_agent or (has_runner and rules.keeps(Guard.RUNNER_DEADLINE))


def ask(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """An idle agent asks for a claim, with an id that it makes."""
    is_idle = worker.slot.stage is Stage.IDLE and worker.session > 0
    if not is_idle or not can_call(shared, worker) or is_past_deadline(worker, rules):
        return
    # A claim call while no job is ready changes nothing.
    if store.first_ready(shared) is not None:
        slot = Slot(Stage.ASKING, id=_new_id(worker))
        yield Step("asks for a claim", shared, worker._replace(slot=slot))


def command_ends(shared: Shared, worker: Worker, _rules: Rules) -> Iterator[Step]:
    is_moving = worker.agent in {Agent.UP, Agent.STUCK, Agent.RESUMED}
    if worker.slot.stage is not Stage.RUNNING or not is_moving:
        return
    for stage, how in ((Stage.SUCCEEDED, "succeeds"), (Stage.FAILED, "fails")):
        slot = Slot(stage, claim=worker.slot.claim)
        yield Step(f"its command {how}", shared, worker._replace(slot=slot))


def kill(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """Agent or runner kills at the deadline, or the runner because its agent has died."""
    if not must_kill(worker, rules):
        return
    if worker.agent is Agent.DEAD:
        mark = (RareBranch.RUNNER_FOLLOWED,)
        yield Step("its runner kills the command", shared, worker._replace(slot=Slot()), marks=mark)
        return
    is_agent = worker.agent is Agent.UP and rules.keeps(Guard.AGENT_DEADLINE)
    mark = (RareBranch.SELF_KILL if is_agent else RareBranch.RUNNER_KILL,)
    who = "its agent" if is_agent else "its runner"
    yield Step(f"{who} kills at the deadline", shared, releasing(worker), marks=mark)


def wake(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """The first act after a freeze: check the deadline, and kill before anything else."""
    if worker.agent is not Agent.RESUMED:
        return
    awake = worker._replace(agent=Agent.UP)
    is_late = is_past_deadline(worker, rules) and not rules.outlives_lease
    if not is_executing(worker) or not is_late:
        yield Step("checks its deadline: in time", shared, awake, marks=_back_in_time(worker))
        return
    mark = (RareBranch.KILLED_ON_RETURN,)
    yield Step("checks its deadline: kills", shared, releasing(awake), marks=mark)


def drain(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """SIGTERM: the command gets a SIGTERM, dies, and its claim is released."""
    stopping = worker.slot._replace(stage=Stage.STOPPING)
    if worker.slot.stage is Stage.STOPPING and worker.agent is Agent.UP:
        yield Step("its command is dead", shared, releasing(worker))
    if worker.slot.stage is Stage.RUNNING and worker.agent is Agent.UP:
        after = spent(shared, Fault.DRAIN, rules)
        if after is not None:
            yield Step("drains", after, worker._replace(slot=stopping), is_fault=True)


def releasing(worker: Worker) -> Worker:
    """The worker after its command was killed: it has to release its claim."""
    return worker._replace(slot=Slot(Stage.RELEASING, claim=worker.slot.claim))


def _back_in_time(worker: Worker) -> tuple[RareBranch, ...]:
    return (RareBranch.BACK_IN_TIME,) if is_executing(worker) else ()


def _new_id(worker: Worker) -> int:
    """The lowest id that this worker does not use; as good as a random one."""
    rows = [row for row in (worker.row, worker.standby) if row is not None]
    known = {claim.id for row in rows for claim in row.claims}
    known |= {call.id for call in worker.late}
    known |= {call.claim.id for call in worker.late if call.claim is not None}
    if isinstance(worker.heartbeat, tuple):
        known |= {claim.id for claim, _ in worker.heartbeat.held}
    return next(number for number in range(1, len(known) + 2) if number not in known)

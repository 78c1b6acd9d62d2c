"""Faults of one worker: disconnected, frozen, dead. Healing is not counted as a fault."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import agent
from tests.protocol.rules import Fault, Guard, Rules
from tests.protocol.state import Agent, HeartbeatStatus, Shared, Slot, Worker
from tests.protocol.step import Step, spent


def cut(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """It is disconnected from the store."""
    if worker.is_cut:
        yield Step("is connected again", shared, worker._replace(is_cut=False))
        return
    after = spent(shared, Fault.CUT, rules)
    if after is not None and worker.agent is not Agent.DEAD:
        cut_off = worker._replace(is_cut=True, is_reachable=False)
        yield Step("is cut off", after, cut_off, is_fault=True)


def freeze(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    if worker.agent in {Agent.FROZEN, Agent.STUCK}:
        back = Agent.RESUMED if rules.keeps(Guard.CHECK_ON_RETURN) else Agent.UP
        yield Step("resumes", shared, worker._replace(agent=back))
        return
    if worker.agent is not Agent.UP:
        return
    kinds = ((Fault.FREEZE, Agent.FROZEN, "freezes"), (Fault.STUCK, Agent.STUCK, "agent freezes"))
    for fault, kind, action in kinds:
        after = spent(shared, fault, rules)
        if after is not None:
            unchanged = worker._replace(agent=kind, is_reachable=False)
            yield Step(action, after, unchanged, is_fault=True)


def die(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """Answers to it are lost; its own requests arrive late, or not at all."""
    if worker.agent is not Agent.UP:
        return
    dead = worker._replace(
        agent=Agent.DEAD,
        is_cut=False,
        heartbeat=HeartbeatStatus.DONE,
        slot=Slot(),
        is_reachable=False,
    )
    after = spent(shared, Fault.DEATH, rules)
    if after is not None:
        yield Step("dies", after, dead, is_fault=True)
    after = spent(shared, Fault.AGENT_DEATH, rules)
    if after is not None and agent.is_executing(worker):
        without_agent = dead._replace(slot=worker.slot)
        yield Step("its agent dies, its runner does not", after, without_agent, is_fault=True)

"""What befalls one worker: cut off, frozen, dead; and how it ends. Healing costs nothing."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import agent
from tests.protocol.rules import Fault, Guard, Rules
from tests.protocol.state import Agent, Hand, Pulse, Shared, Worker
from tests.protocol.step import Step, spent


def cut(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """It reaches the store no more, and hears nothing."""
    if worker.is_cut:
        yield Step("is connected again", shared, worker._replace(is_cut=False))
        return
    after = spent(shared, Fault.CUT, rules)
    if after is not None and worker.agent is not Agent.DEAD:
        severed = worker._replace(is_cut=True, is_blameless=False)
        yield Step("is cut off", after, severed, is_fault=True)


def freeze(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    if worker.agent in {Agent.FROZEN, Agent.STUCK}:
        back = Agent.THAWED if rules.keeps(Guard.CHECK_ON_RETURN) else Agent.UP
        yield Step("thaws", shared, worker._replace(agent=back))
        return
    if worker.agent is not Agent.UP:
        return
    kinds = ((Fault.FREEZE, Agent.FROZEN, "freezes"), (Fault.STUCK, Agent.STUCK, "agent freezes"))
    for fault, kind, words in kinds:
        after = spent(shared, fault, rules)
        if after is not None:
            still = worker._replace(agent=kind, is_blameless=False)
            yield Step(words, after, still, is_fault=True)


def die(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """What was on its way to it is lost; what it sent arrives late, or not at all."""
    if worker.agent is not Agent.UP:
        return
    dead = worker._replace(
        agent=Agent.DEAD, is_cut=False, beat=Pulse.DONE, hand=Hand(), is_blameless=False
    )
    after = spent(shared, Fault.DEATH, rules)
    if after is not None:
        yield Step("dies", after, dead, is_fault=True)
    after = spent(shared, Fault.AGENT_DEATH, rules)
    if after is not None and agent.is_executing(worker):
        headless = dead._replace(hand=worker.hand)
        yield Step("its agent dies, its runner lives", after, headless, is_fault=True)

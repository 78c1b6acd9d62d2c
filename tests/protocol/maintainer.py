"""The maintainer takes back what one worker holds: after a whole lease, or on proof of death."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import agent, store, watch
from tests.protocol.rules import Guard, Rules
from tests.protocol.sometimes import Sometimes
from tests.protocol.state import Agent, Shared, Worker
from tests.protocol.step import Step


def reap(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """Take back what a worker holds; guarded by the counter that the maintainer saw."""
    if not worker.is_ripe or not shared.is_up or not worker.row.is_live:
        return
    if worker.row.has_risen and rules.keeps(Guard.COUNTER_IN_REAP):
        spared = watch.forgotten(worker)
        mark = (Sometimes.REAP_CAME_TOO_LATE,)
        yield Step("is not reaped: its counter has risen", shared, spared, marks=mark)
        return
    after, gone, marks = store.take_back(shared, worker, is_proven=False, rules=rules)
    if agent.is_executing(worker):
        marks = (*marks, Sometimes.REAPED_A_RUNNING)
    yield Step("is reaped", after, gone, marks=marks, is_reap=True)


def reap_proven(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """Its processes have ended, and somebody saw it: nobody waits for the lease."""
    is_dead = worker.agent is Agent.DEAD and not agent.is_executing(worker)
    if not is_dead and rules.keeps(Guard.PROOF):
        return
    if shared.is_up and (worker.row.is_live or worker.row.awaiting):
        after, gone, marks = store.take_back(shared, worker, is_proven=True, rules=rules)
        yield Step("is proven dead", after, gone, marks=(*marks, Sometimes.PROVEN))

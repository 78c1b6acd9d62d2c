"""The maintainer reaps a worker: after a whole lease, or on proof of its death."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import agent, observation, store
from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Guard, Rules
from tests.protocol.state import Agent, Shared, Worker
from tests.protocol.step import Step


def reap(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """Requeue the claims of a worker, if its counter is still the observed one."""
    if not worker.is_expired or not shared.is_up or not worker.row.is_live:
        return
    if worker.row.has_risen and rules.keeps(Guard.COUNTER_IN_REAP):
        kept = observation.not_observed(worker)
        mark = (RareBranch.REAP_CAME_TOO_LATE,)
        yield Step("is not reaped: its counter has risen", shared, kept, marks=mark)
        return
    after, removed, marks = store.reap_worker(shared, worker, is_proven=False, rules=rules)
    if agent.is_executing(worker):
        marks = (*marks, RareBranch.REAPED_A_RUNNING)
    yield Step("is reaped", after, removed, marks=marks, is_reap=True)


def reap_proven(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """Its processes have ended, and this was proven: the reap does not wait for the lease."""
    is_dead = worker.agent is Agent.DEAD and not agent.is_executing(worker)
    if not is_dead and rules.keeps(Guard.PROOF):
        return
    if shared.is_up and (worker.row.is_live or worker.row.awaiting):
        after, removed, marks = store.reap_worker(shared, worker, is_proven=True, rules=rules)
        yield Step("is proven dead", after, removed, marks=(*marks, RareBranch.PROVEN))

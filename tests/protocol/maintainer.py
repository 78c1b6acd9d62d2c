"""The maintainer's steps with one worker: reap it, or forget a claim or a death that is proven."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import agent, jobs, store, watch
from tests.protocol.rules import Guard, Rules
from tests.protocol.sometimes import Sometimes
from tests.protocol.state import GONE, Agent, Place, Row, Shared, Worker, with_job
from tests.protocol.step import Step


def reap(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """Take back what a worker holds; guarded by the counter that the maintainer saw."""
    if not worker.is_ripe or not shared.is_up or not worker.row.is_live:
        return
    if worker.row.has_risen and rules.keeps(Guard.COUNTER_IN_REAP):
        spared = worker._replace(still=0, is_ripe=False)
        mark = (Sometimes.REAP_CAME_TOO_LATE,)
        yield Step("is not reaped: its counter has risen", shared, spared, marks=mark)
        return
    marks = (Sometimes.REAPED_A_RUNNING,) if agent.is_executing(worker) else ()
    step = _take_back(shared, worker, is_proven=False, rules=rules)
    yield step._replace(action="is reaped", marks=(*step.marks, *marks), is_reap=True)


def reap_proven(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """Its processes have ended, and somebody saw it: nobody waits for the lease."""
    is_dead = worker.agent is Agent.DEAD and not agent.is_executing(worker)
    if not is_dead and rules.keeps(Guard.PROOF):
        return
    if not shared.is_up or not (worker.row.is_live or worker.row.awaiting):
        return
    step = _take_back(shared, worker, is_proven=True, rules=rules)
    after, marks = step.shared, (*step.marks, Sometimes.PROVEN)
    for index in worker.row.awaiting:
        after = with_job(after, index, jobs.proven(after.jobs[index]))
        marks = (*marks, Sometimes.AWAITED_PROOF)
    yield step._replace(action="is proven dead", shared=after, marks=marks)


def _take_back(shared: Shared, worker: Worker, *, is_proven: bool, rules: Rules) -> Step:
    after, marks = store.take_back(shared, worker.row, is_proven=is_proven, rules=rules)
    awaiting = [c.job for c in worker.row.claims if after.jobs[c.job].place is Place.AWAITING]
    row: Row = GONE
    if not is_proven:
        row = GONE._replace(awaiting=tuple(sorted({*awaiting, *worker.row.awaiting})))
    return Step("", after, watch.forgotten(worker)._replace(row=row), marks=marks)

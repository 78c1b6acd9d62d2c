"""Steps that affect all workers equally, or none: time, observations, the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from tests.protocol import agent, jobs, observation
from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Fault, Guard, Rules
from tests.protocol.state import Agent, Answer, HeartbeatStatus, Shared, Stage, Worker, with_job
from tests.protocol.step import WideStep, spent


def steps(shared: Shared, gap: int, rules: Rules) -> Iterator[WideStep]:
    """All of them that are possible now, regardless of actions that must precede a tick."""
    yield from _time(shared, gap, rules)
    yield from _observe(shared, gap, rules)
    yield from _outage(shared, rules)
    yield from _standby(shared, rules)
    yield from _clock(shared, rules)
    yield from _cancel(shared, rules)


def may_wait(worker: Worker, rules: Rules, *, is_up: bool) -> bool:
    """Whether a tick may pass for this worker: no action is pending that takes less than a tick.

    These are the model's assumptions about speed: a kill, and a heartbeat with its answer over a
    working connection, take less than a tick. The maintainer may be slow.
    """
    if worker.agent is Agent.RESUMED or agent.must_kill(worker, rules):
        return False
    can_send = worker.agent is Agent.UP and not worker.is_cut and worker.session > 0
    return worker.heartbeat is HeartbeatStatus.DONE or not (can_send and is_up)


def _time(shared: Shared, gap: int, rules: Rules) -> Iterator[WideStep]:
    gap = min(gap + 1, rules.observation_gap + 1)
    change = "tick" if gap <= rules.observation_gap else "tick unwatched"
    yield WideStep("a tick passes", shared, change, gap=gap, takes_time=True)


def _observe(shared: Shared, gap: int, rules: Rules) -> Iterator[WideStep]:
    """The maintainer reads all counters at once."""
    if not shared.is_up:
        if not rules.keeps(Guard.FAILED_OBSERVATION):
            yield WideStep("the maintainer fails to observe", shared, gap=0)
        return
    if gap > rules.observation_gap and rules.keeps(Guard.OBSERVATION_GAP):
        mark = (RareBranch.LEASE_RESTARTED,)
        action = "the maintainer observes after a gap"
        yield WideStep(action, shared, "observe after a gap", marks=mark, gap=0)
    else:
        yield WideStep("the maintainer observes", shared, "observe", gap=0)


def _outage(shared: Shared, rules: Rules) -> Iterator[WideStep]:
    if not shared.is_up:
        yield WideStep("the database is back", shared._replace(is_up=True))
        return
    after = spent(shared, Fault.OUTAGE, rules)
    if after is not None:
        yield WideStep("the database goes away", after._replace(is_up=False), is_fault=True)


def _standby(shared: Shared, rules: Rules) -> Iterator[WideStep]:
    """A failover continues with the jobs and rows of the standby; later commits are lost."""
    if shared.standby is None:
        after = spent(shared, Fault.LAG, rules)
        if after is not None and _is_sound(Fault.CLOCK_BACK, shared, rules):
            lagging = after._replace(standby=shared.jobs)
            yield WideStep("a standby falls behind", lagging, "fall behind", is_fault=True)
        return
    caught_up = shared._replace(standby=None)
    yield WideStep("the standby catches up", caught_up, "catch up")
    mark = (RareBranch.COMMITS_LOST,)
    lost = caught_up._replace(jobs=shared.standby)
    action = "failover: the standby is the database now"
    yield WideStep(action, lost, "fail over", is_fault=True, marks=mark)


def _clock(shared: Shared, rules: Rules) -> Iterator[WideStep]:
    after = spent(shared, Fault.CLOCK_BACK, rules)
    if after is not None and _is_sound(Fault.LAG, shared, rules):
        behind = after._replace(is_clock_behind=True)
        yield WideStep("the database's clock goes back", behind, is_fault=True)
    after = spent(shared, Fault.CLOCK_FORWARD, rules)
    if after is not None:
        change = None if rules.keeps(Guard.OWN_CLOCK) else "expire every lease"
        yield WideStep("the database's clock jumps forward", after, change, is_fault=True)


def _cancel(shared: Shared, rules: Rules) -> Iterator[WideStep]:
    after = spent(shared, Fault.CANCEL, rules)
    for index, job in enumerate(shared.jobs):
        if after is not None and shared.is_up and not job.is_cancelled:
            ended, marks = jobs.cancelled(job, rules)
            action = f"job {index + 1} is cancelled"
            after_it = with_job(after, index, ended)
            yield WideStep(action, after_it, is_fault=True, marks=marks)


def _is_sound(other: Fault, shared: Shared, rules: Rules) -> bool:
    """The promise about fences needs a clock that does not go back across a failover."""
    return other not in shared.used or rules.clock_may_fail_with_standby


def _tick(worker: Worker, rules: Rules) -> Worker:
    worker = observation.ticked(worker, rules)
    if worker.agent is Agent.DEAD and not agent.is_executing(worker):
        return worker._replace(age=0)
    if worker.agent is Agent.FROZEN and not rules.keeps(Guard.SUSPENSION):
        return worker
    heartbeat = worker.heartbeat
    if isinstance(heartbeat, Answer):
        heartbeat = heartbeat._replace(age=min(heartbeat.age + 1, rules.deadline))
    elif worker.session > 0:
        heartbeat = HeartbeatStatus.DUE
    return worker._replace(age=min(worker.age + 1, rules.deadline), heartbeat=heartbeat)


def _tick_unwatched(worker: Worker, rules: Rules) -> Worker:
    return observation.unwatched(_tick(worker, rules), rules)


def _fallen_behind(worker: Worker, _rules: Rules) -> Worker:
    return worker._replace(standby=worker.row)


def _catch_up(worker: Worker, _rules: Rules) -> Worker:
    return worker._replace(standby=None)


def _failed_over(worker: Worker, rules: Rules) -> Worker:
    row, slot = worker.standby, worker.slot
    assert row is not None, "a failover needs a standby"
    if rules.keeps(Guard.SERVER_START):
        worker = observation.not_observed(worker)
        row = row._replace(has_risen=True)
    if slot.claim is not None:
        is_back = slot.claim in row.claims
        may_run = agent.is_executing(worker) or slot.stage is Stage.ASKING
        slot = slot._replace(
            is_orphaned=slot.is_orphaned or (may_run and not is_back),
            is_reported=slot.is_reported and not is_back,
        )
    return worker._replace(row=row, standby=None, slot=slot)


def _aged(worker: Worker, rules: Rules) -> Worker:
    return worker._replace(unchanged=rules.lease)


CHANGES: Final[Mapping[str, Callable[[Worker, Rules], Worker]]] = MappingProxyType(
    {
        "tick": _tick,
        "tick unwatched": _tick_unwatched,
        "observe": observation.observed,
        "observe after a gap": observation.lease_restarted,
        "fall behind": _fallen_behind,
        "catch up": _catch_up,
        "fail over": _failed_over,
        "expire every lease": _aged,
    }
)
"""The change of a worker by each wide step."""

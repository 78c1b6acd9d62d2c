"""Steps that touch all workers alike, or none: time, the maintainer's look, the database's fate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from tests.protocol import agent, jobs, watch
from tests.protocol.rules import Fault, Guard, Rules
from tests.protocol.sometimes import Sometimes
from tests.protocol.state import Agent, Answer, Pulse, Shared, Stage, Worker, with_job
from tests.protocol.step import WideStep, spent


def steps(shared: Shared, gap: int, rules: Rules) -> Iterator[WideStep]:
    """All of them that are possible now, time apart from whether somebody has to act first."""
    yield from _time(shared, gap, rules)
    yield from _look(shared, gap, rules)
    yield from _outage(shared, rules)
    yield from _standby(shared, rules)
    yield from _clock(shared, rules)
    yield from _cancel(shared, rules)


def may_wait(worker: Worker, rules: Rules, *, is_up: bool) -> bool:
    """Whether a tick may pass for this worker: nothing that is faster than a tick is left to do.

    These are the model's assumptions about speed: killing, and a beat with its answer over a
    connection that works, take less than a tick. The maintainer may be as slow as it likes.
    """
    if worker.agent is Agent.THAWED or agent.must_kill(worker, rules):
        return False
    can_beat = worker.agent is Agent.UP and not worker.is_cut and worker.session > 0
    return worker.beat is Pulse.DONE or not (can_beat and is_up)


def _time(shared: Shared, gap: int, rules: Rules) -> Iterator[WideStep]:
    gap = min(gap + 1, rules.look_gap + 1)
    change = "tick" if gap <= rules.look_gap else "tick unwatched"
    yield WideStep("a tick passes", shared, change, gap=gap, takes_time=True)


def _look(shared: Shared, gap: int, rules: Rules) -> Iterator[WideStep]:
    """The maintainer reads all counters at once."""
    if not shared.is_up:
        if not rules.keeps(Guard.FAILED_LOOK):
            yield WideStep("the maintainer looks in vain", shared, gap=0)
        return
    if gap > rules.look_gap and rules.keeps(Guard.LOOK_GAP):
        mark = (Sometimes.AMNESTY,)
        words = "the maintainer looks after a gap"
        yield WideStep(words, shared, "look after a gap", marks=mark, gap=0)
    else:
        yield WideStep("the maintainer looks", shared, "look", gap=0)


def _outage(shared: Shared, rules: Rules) -> Iterator[WideStep]:
    if not shared.is_up:
        yield WideStep("the database is back", shared._replace(is_up=True))
        return
    after = spent(shared, Fault.OUTAGE, rules)
    if after is not None:
        yield WideStep("the database goes away", after._replace(is_up=False), is_fault=True)


def _standby(shared: Shared, rules: Rules) -> Iterator[WideStep]:
    """A failover takes the jobs and rows as the standby has them; what came after is lost."""
    if shared.standby is None:
        after = spent(shared, Fault.LAG, rules)
        if after is not None and _is_sound(Fault.CLOCK_BACK, shared, rules):
            lagging = after._replace(standby=shared.jobs)
            yield WideStep("a standby falls behind", lagging, "fall behind", is_fault=True)
        return
    settled = shared._replace(standby=None)
    yield WideStep("the standby catches up", settled, "catch up")
    mark = (Sometimes.COMMITS_LOST,)
    lost = settled._replace(jobs=shared.standby)
    words = "failover: the standby is the database now"
    yield WideStep(words, lost, "fail over", is_fault=True, marks=mark)


def _clock(shared: Shared, rules: Rules) -> Iterator[WideStep]:
    after = spent(shared, Fault.CLOCK_BACK, rules)
    if after is not None and _is_sound(Fault.LAG, shared, rules):
        behind = after._replace(is_clock_behind=True)
        yield WideStep("the database's clock goes back", behind, is_fault=True)
    after = spent(shared, Fault.CLOCK_FORWARD, rules)
    if after is not None:
        change = None if rules.keeps(Guard.OWN_CLOCK) else "age every watch"
        yield WideStep("the database's clock leaps ahead", after, change, is_fault=True)


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
    worker = watch.ticked(worker, rules)
    if worker.agent is Agent.DEAD and not agent.is_executing(worker):
        return worker._replace(age=0)
    if worker.agent is Agent.FROZEN and not rules.keeps(Guard.SUSPENSION):
        return worker
    beat = worker.beat
    if isinstance(beat, Answer):
        beat = beat._replace(age=min(beat.age + 1, rules.deadline))
    elif worker.session > 0:
        beat = Pulse.DUE
    return worker._replace(age=min(worker.age + 1, rules.deadline), beat=beat)


def _tick_unwatched(worker: Worker, rules: Rules) -> Worker:
    return watch.unwatched(_tick(worker, rules), rules)


def _fallen_behind(worker: Worker, _rules: Rules) -> Worker:
    return worker._replace(standby=worker.row)


def _caught_up(worker: Worker, _rules: Rules) -> Worker:
    return worker._replace(standby=None)


def _failed_over(worker: Worker, rules: Rules) -> Worker:
    row, hand = worker.standby, worker.hand
    assert row is not None, "a failover needs a standby"
    if rules.keeps(Guard.NEW_RUN):
        worker = watch.forgotten(worker)
        row = row._replace(has_risen=True)
    if hand.claim is not None:
        is_back = hand.claim in row.claims
        may_run = agent.is_executing(worker) or hand.stage is Stage.ASKING
        hand = hand._replace(
            is_orphaned=hand.is_orphaned or (may_run and not is_back),
            is_reported=hand.is_reported and not is_back,
        )
    return worker._replace(row=row, standby=None, hand=hand)


def _aged(worker: Worker, rules: Rules) -> Worker:
    return worker._replace(still=rules.lease)


CHANGES: Final[Mapping[str, Callable[[Worker, Rules], Worker]]] = MappingProxyType(
    {
        "tick": _tick,
        "tick unwatched": _tick_unwatched,
        "look": watch.looked,
        "look after a gap": watch.started_anew,
        "fall behind": _fallen_behind,
        "catch up": _caught_up,
        "fail over": _failed_over,
        "age every watch": _aged,
    }
)
"""How each wide step changes a worker."""

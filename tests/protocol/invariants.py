"""The invariants of every snapshot and every step.

`of_step` checks one worker before and after a step, `of_state` a whole snapshot. The explorer
checks progress (I11), which is a property of the graph.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tests.protocol import agent
from tests.protocol.rules import Rules
from tests.protocol.state import Agent, Claim, End, Job, Place, Shared, Stage, Worker
from tests.protocol.step import Step, WideStep


class Invariant(StrEnum):
    LOST = "I1: a running job has a claim, and a job that is not running has none"
    FINAL = "I2, I3: a job ends once, and its end never changes"
    CURRENT = "I4: an accepted write comes from a claim that was current"
    RISING = "I5: the fence rises with every claim of a job, also across lost commits"
    BOUNDED = "I6: failures and losses are bounded"
    CANCELLED = "I7: after a cancel nothing is claimed, and the job ends Cancelled"
    CANCEL_STOPS = "I7: a command stops when its agent learns of the cancel"
    APART = "I8: executions overlap only if one is frozen past its deadline, or just resumed"
    PROGRESS = "I11: with every fault healed, each job can still end"
    LIVE_WORKER_KEPT = "I14: a worker that runs and sends heartbeats is never reaped"
    ANSWER_KEPT = "I15: an accepted report is never answered as stale"
    SINGLE = "I16: a job has one claim at most, and a claim has one job and a live worker"


class Profile(NamedTuple):
    """The properties of one worker that the invariants of a whole snapshot use."""

    claimed: tuple[int, ...]
    """The jobs of its claims."""
    executes: int | None
    is_excused: bool
    """Its execution may overlap with another execution of the job."""
    is_orphaned: bool
    is_sound: bool
    """Its claims have different ids, and a live row."""


def profile(worker: Worker, rules: Rules) -> Profile:
    claims = worker.row.claims
    executes = None
    if agent.is_executing(worker):
        assert worker.slot.claim is not None, "a running command has a claim"
        executes = worker.slot.claim.job
    return Profile(
        claimed=tuple(claim.job for claim in claims),
        executes=executes,
        is_excused=worker.slot.claim in claims or _is_excused(worker, rules),
        is_orphaned=worker.slot.is_orphaned,
        is_sound=len({claim.id for claim in claims}) == len(claims)
        and (worker.row.is_live or not claims),
    )


def of_state(
    jobs: tuple[Job, ...], profiles: tuple[Profile, ...], rules: Rules
) -> Invariant | None:
    claimed = [job for one in profiles for job in one.claimed]
    if not all(one.is_sound for one in profiles) or len(set(claimed)) < len(claimed):
        return Invariant.SINGLE
    for index, job in enumerate(jobs):
        if (job.place is Place.RUNNING) != (index in claimed):
            return Invariant.LOST
        if not _is_apart(index, profiles):
            return Invariant.APART
        broken = _of_job(job, rules)
        if broken is not None:
            return broken
    return None


def of_step(shared: Shared, worker: Worker, step: Step) -> Invariant | None:
    """Check one step of one worker; `shared` and `worker` are those before it."""
    if step.wrote is not None and step.wrote not in worker.row.claims:
        return Invariant.CURRENT
    if step.is_reap and _is_alive(worker):
        return Invariant.LIVE_WORKER_KEPT
    if step.was_answered_stale and worker.slot.is_reported:
        return Invariant.ANSWER_KEPT
    if _ignores_cancel(step):
        return Invariant.CANCEL_STOPS
    return _of_grant(shared, step.granted) or _of_ends(shared, step.shared)


def of_wide_step(shared: Shared, step: WideStep) -> Invariant | None:
    """A failover is exempt: it returns the store to an earlier state."""
    return None if step.change == "fail over" else _of_ends(shared, step.shared)


def overlaps(profiles: tuple[Profile, ...]) -> bool:
    running = [one.executes for one in profiles if one.executes is not None]
    return len(set(running)) < len(running)


def _is_excused(worker: Worker, rules: Rules) -> bool:
    if worker.slot.is_orphaned:
        return True
    if rules.forbids_overlap or not agent.is_past_deadline(worker, rules):
        return False
    return rules.outlives_lease or worker.agent in {Agent.FROZEN, Agent.RESUMED}


def _is_apart(job: int, profiles: tuple[Profile, ...]) -> bool:
    running = [one for one in profiles if one.executes == job]
    return len(running) < 2 or all(one.is_excused for one in running)


def _of_job(job: Job, rules: Rules) -> Invariant | None:
    is_done = job.place is Place.DONE
    if job.failures > rules.max_failures or job.losses > rules.max_losses + 1:
        return Invariant.BOUNDED
    if not is_done and (job.failures == rules.max_failures or job.losses > rules.max_losses):
        return Invariant.BOUNDED
    is_open = job.place in {Place.READY, Place.AWAITING}
    if job.is_cancelled and (is_open or (is_done and job.end is not End.CANCELLED)):
        return Invariant.CANCELLED
    return None


def _of_grant(before: Shared, claim: Claim | None) -> Invariant | None:
    if claim is None:
        return None
    if claim.fence <= before.highest[claim.job]:
        return Invariant.RISING
    return Invariant.CANCELLED if before.jobs[claim.job].is_cancelled else None


def _of_ends(before: Shared, after: Shared) -> Invariant | None:
    for old, new in zip(before.jobs, after.jobs, strict=True):
        if old.end is not None and (new.end, new.place) != (old.end, old.place):
            return Invariant.FINAL
    return None


def _is_alive(worker: Worker) -> bool:
    """Only the database can have kept it from sending heartbeats lately."""
    is_same = worker.session == worker.row.session
    return is_same and worker.is_reachable and worker.agent is not Agent.DEAD


def _ignores_cancel(step: Step) -> bool:
    if step.received is None or step.worker.slot.stage is not Stage.RUNNING:
        return False
    return (step.worker.slot.claim, True) in step.received.held

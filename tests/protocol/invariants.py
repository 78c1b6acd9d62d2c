"""What must hold in every snapshot and of every step; the numbers up to I11 are the project's own.

`of_step` sees one worker before and after, `of_state` a whole snapshot. Progress (I11) is not
here: whether a job can still end is a question about the graph, which the explorer answers.
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
    OBEDIENT = "I7: a command stops when its agent hears of the cancel"
    APART = "I8: executions overlap only if one is frozen past its deadline, or just back"
    PROGRESS = "I11: with every fault healed, each job can still end"
    SPARED = "I14: a worker that lives and beats is never reaped"
    HONEST = "I15: nobody whose report was accepted is told that it was stale"
    SINGLE = "I16: a job has one claim at most, and a claim has one job and a live worker"


class Profile(NamedTuple):
    """What the invariants of a whole snapshot need to know of one worker."""

    claimed: tuple[int, ...]
    """The jobs of its claims."""
    executes: int | None
    is_excused: bool
    """What it executes may overlap with another execution of the job."""
    is_orphaned: bool
    is_sound: bool
    """Its claims have different ids, and a live row."""


def profile(worker: Worker, rules: Rules) -> Profile:
    claims = worker.row.claims
    executes = None
    if agent.is_executing(worker):
        assert worker.hand.claim is not None, "what runs has a claim"
        executes = worker.hand.claim.job
    return Profile(
        claimed=tuple(claim.job for claim in claims),
        executes=executes,
        is_excused=worker.hand.claim in claims or _is_excused(worker, rules),
        is_orphaned=worker.hand.is_orphaned,
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
    """Judge one step of one worker; `shared` and `worker` are as they were before it."""
    if step.wrote is not None and step.wrote not in worker.row.claims:
        return Invariant.CURRENT
    if step.is_reap and _is_alive(worker):
        return Invariant.SPARED
    if step.was_told_stale and worker.hand.is_reported:
        return Invariant.HONEST
    if _is_disobedient(step):
        return Invariant.OBEDIENT
    return _of_grant(shared, step.granted) or _of_ends(shared, step.shared)


def of_wide_step(shared: Shared, step: WideStep) -> Invariant | None:
    """A failover is exempt: it takes the store back to what it was."""
    return None if step.change == "fail over" else _of_ends(shared, step.shared)


def overlaps(profiles: tuple[Profile, ...]) -> bool:
    running = [one.executes for one in profiles if one.executes is not None]
    return len(set(running)) < len(running)


def _is_excused(worker: Worker, rules: Rules) -> bool:
    if worker.hand.is_orphaned:
        return True
    if rules.forbids_overlap or not agent.is_past_deadline(worker, rules):
        return False
    return rules.outlives_lease or worker.agent in {Agent.FROZEN, Agent.THAWED}


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
    """Nothing but the database kept it from beating since its last acknowledged beat."""
    is_same = worker.session == worker.row.session
    return is_same and worker.is_blameless and worker.agent is not Agent.DEAD


def _is_disobedient(step: Step) -> bool:
    if step.heard is None or step.worker.hand.stage is not Stage.RUNNING:
        return False
    return (step.worker.hand.claim, True) in step.heard.held

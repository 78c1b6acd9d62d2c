"""The changes of a job's row when its claim is granted, completed, released or reaped."""

from __future__ import annotations

from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Guard, Rules
from tests.protocol.state import End, Job, Place, Shared

Moved = tuple[Job, tuple[RareBranch, ...]]


def granted(job: Job, fence: int) -> Job:
    return job._replace(place=Place.RUNNING, attempts=job.attempts + 1, fence=fence)


def next_fence(shared: Shared, index: int, rules: Rules) -> int:
    """The greater of the last fence + 1 and the database's clock, which is past every issued fence.

    If the clock went back, only the last fence counts.
    """
    last = shared.jobs[index].fence
    if shared.is_clock_behind or not rules.keeps(Guard.FENCE_BY_CLOCK):
        return last + 1
    return max(last, shared.highest[index]) + 1


def completed(job: Job, *, is_success: bool, rules: Rules) -> Moved:
    if job.is_cancelled and rules.keeps(Guard.CANCEL_AT_COMPLETE):
        return _ended(job, End.CANCELLED), (RareBranch.CANCEL_AT_COMPLETE,)
    if is_success:
        return _ended(job, End.SUCCEEDED), ()
    job = job._replace(failures=job.failures + 1)
    if job.failures >= rules.max_failures and rules.keeps(Guard.BOUNDED_FAILURES):
        return _ended(job, End.FAILED), (RareBranch.FAILED_OUT,)
    return job._replace(place=Place.READY), ()


def released(job: Job, rules: Rules) -> Moved:
    if job.is_cancelled and rules.keeps(Guard.CANCEL_AT_RELEASE):
        return _ended(job, End.CANCELLED), (RareBranch.CANCEL_AT_RELEASE,)
    return job._replace(place=Place.READY), ()


def lost(job: Job, *, is_proven: bool, rules: Rules) -> Moved:
    """Its worker was lost."""
    if job.is_cancelled and rules.keeps(Guard.CANCEL_AT_REAP):
        return _ended(job, End.CANCELLED), (RareBranch.CANCEL_AT_REAP,)
    job = job._replace(losses=job.losses + 1)
    if job.losses > rules.max_losses and rules.keeps(Guard.BOUNDED_LOSSES):
        return _ended(job, End.FAILED), (RareBranch.LOST_OUT,)
    if rules.forbids_overlap and not is_proven and rules.keeps(Guard.AWAIT_PROOF):
        return job._replace(place=Place.AWAITING), ()
    return job._replace(place=Place.READY), ()


def proven(job: Job) -> Job:
    """Its worker is certainly dead; a user may have cancelled the job meanwhile."""
    return job._replace(place=Place.READY) if job.place is Place.AWAITING else job


def cancelled(job: Job, rules: Rules) -> Moved:
    """The answer to this acknowledges the cancel."""
    if job.place is Place.DONE and rules.keeps(Guard.END_IS_FINAL):
        return job, (RareBranch.CANCEL_TOO_LATE,)
    job = job._replace(is_cancelled=True)
    return (job if job.place is Place.RUNNING else _ended(job, End.CANCELLED)), ()


def _ended(job: Job, end: End) -> Job:
    return job._replace(place=Place.DONE, end=end)

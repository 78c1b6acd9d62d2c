"""The steps of those who submit, cancel, hold and resume."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.machine import random_plans
from tests.store.machine.walk import Walk
from workron.core import errors
from workron.core.plan import Plan


def submit(walk: Walk) -> None:
    """Submit something new."""
    walk.propagate_all()
    walk.advance(timedelta(milliseconds=1))
    plan = random_plans.any_plan(walk.chance, walk.oracle.now)
    walk.plans.append(plan)
    _submit(walk, plan, supersedes=random_plans.is_chosen(walk.chance, 0.3))


def submit_again(walk: Walk) -> None:
    """Submit something known, under its own uid or a new one."""
    if walk.plans:
        walk.propagate_all()
        walk.advance(timedelta(milliseconds=1))
        plan = walk.pick(walk.plans[::-1])
        is_new = random_plans.is_chosen(walk.chance, 0.5)
        _submit(walk, plans.again(plan) if is_new else plan, supersedes=False)


def _submit(walk: Walk, plan: Plan, *, supersedes: bool) -> None:
    standing = walk.oracle.standing(plan)
    call = walk.store.submit([plan], supersedes=supersedes)
    if standing is None and walk.oracle.unfinished(plan) and not supersedes:
        with pytest.raises(errors.NameTakenError):
            walk.run(call)
    elif standing is None and walk.oracle.closes_a_cycle(plan):
        with pytest.raises(errors.GraphError):
            walk.run(call)
    else:
        (submitted,) = walk.run(call)
        assert submitted.is_new == (standing is None)
        assert standing is None or submitted.run == standing.id
        if standing is None:
            walk.unfinished.append(walk.oracle.submit(plan, submitted.run))
            # It may be decided already, by upstreams that have ended.
            walk.is_propagated = False


def hold(walk: Walk) -> None:
    """Suspend a whole run."""
    _sweep(walk, "suspend")


def resume(walk: Walk) -> None:
    """Let it go on."""
    _sweep(walk, "resume")


def cancel(walk: Walk) -> None:
    """End it."""
    _sweep(walk, "cancel")


def _sweep(walk: Walk, verb: str) -> None:
    """Ask it of any run, for choice of one that runs."""
    walk.propagate_all()
    if not walk.oracle.runs:
        return
    running = {job.run for worker in walk.workers for job in walk.oracle.held(worker)}
    run = walk.pick(sorted(walk.oracle.runs, key=lambda run: run not in running))
    was_over = walk.oracle.jobs[run.id].is_over
    answer = walk.run(getattr(walk.store, verb)(run.id))
    # A cancel may be asked for again; what holding means after one is left open.
    is_open = run.is_cancelled and verb != "cancel"
    assert is_open or answer == (run.is_cancelled or not was_over), f"{verb}: {answer}"
    getattr(walk.oracle, verb)(run)
    walk.is_propagated = False

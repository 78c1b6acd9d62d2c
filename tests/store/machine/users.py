"""The steps of users: submit, cancel, suspend, resume."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.machine import random_plans
from tests.store.machine.walk import Walk
from workron.core import errors
from workron.core.plan import Plan


def submit(walk: Walk) -> None:
    """Submit a new plan."""
    walk.propagate_all()
    walk.advance(timedelta(milliseconds=1))
    plan = random_plans.any_plan(walk.chance, walk.oracle.now)
    walk.plans.append(plan)
    _submit(walk, plan, supersedes=random_plans.is_chosen(walk.chance, 0.3))


def submit_again(walk: Walk) -> None:
    """Submit a known plan, under its own uid or a new one."""
    if walk.plans:
        walk.propagate_all()
        walk.advance(timedelta(milliseconds=1))
        plan = walk.pick(walk.plans[::-1])
        is_new = random_plans.is_chosen(walk.chance, 0.5)
        _submit(walk, plans.again(plan) if is_new else plan, supersedes=False)


def _submit(walk: Walk, plan: Plan, *, supersedes: bool) -> None:
    existing = walk.oracle.existing(plan)
    call = walk.store.submit([plan], supersedes=supersedes)
    if existing is None and walk.oracle.unfinished(plan) and not supersedes:
        with pytest.raises(errors.NameTakenError):
            walk.run(call)
    elif existing is None and walk.oracle.closes_a_cycle(plan):
        with pytest.raises(errors.GraphError):
            walk.run(call)
    else:
        (submitted,) = walk.run(call)
        assert submitted.is_new == (existing is None)
        assert existing is None or submitted.run == existing.id
        if existing is None:
            walk.unfinished.append(walk.oracle.submit(plan, submitted.run))
            # Upstreams that have ended may have resolved it already.
            walk.is_propagated = False


def suspend(walk: Walk) -> None:
    """Suspend a whole run."""
    _update_run(walk, "suspend")


def resume(walk: Walk) -> None:
    """Resume a whole run."""
    _update_run(walk, "resume")


def cancel(walk: Walk) -> None:
    """Cancel a whole run, sometimes with its jobs of `finally`."""
    _update_run(walk, "cancel", force=random_plans.is_chosen(walk.chance, 0.3))


def delete(walk: Walk) -> None:
    """Delete a run, preferably an ended one."""
    walk.propagate_all()
    if not walk.oracle.runs:
        return
    refusals = {run.id: walk.oracle.refuses_deletion(run) for run in walk.oracle.runs}
    run = walk.pick(sorted(walk.oracle.runs, key=lambda run: refusals[run.id] is not None))
    refusal = refusals[run.id]
    assert walk.run(walk.store.delete_run(run.id)) == refusal
    if refusal is None:
        walk.oracle.delete(run)
        assert walk.run(walk.store.get_run(run.id)) is None


def _update_run(walk: Walk, operation: str, **options: bool) -> None:
    """Apply an operation to a run, preferably a running one."""
    walk.propagate_all()
    if not walk.oracle.runs:
        return
    running = {job.run for worker in walk.workers for job in walk.oracle.held(worker)}
    run = walk.pick(sorted(walk.oracle.runs, key=lambda run: run not in running))
    was_over = walk.oracle.jobs[run.id].is_over
    answer = walk.run(getattr(walk.store, operation)(run.id, **options))
    # A cancel may be repeated; what a suspend returns after it is not specified.
    is_open = run.is_cancelled and operation != "cancel"
    assert is_open or answer == (run.is_cancelled or not was_over), f"{operation}: {answer}"
    getattr(walk.oracle, operation)(run, **options)
    walk.is_propagated = False

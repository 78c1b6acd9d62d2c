"""The steps of those who submit, cancel, hold and resume."""

from datetime import timedelta

import pytest
from hypothesis import strategies as st

from tests.store.behaviour import plans
from tests.store.machine import sketches
from tests.store.machine.walk import PICK, Draw, Walk, at
from workron.core import errors
from workron.core.plan import Plan

SWEEPS = st.sampled_from(["hold", "resume", "cancel", "resume", "hold"])


def submit(walk: Walk, draw: Draw) -> None:
    """Submit something new."""
    walk.settle()
    walk.advance(timedelta(milliseconds=1))
    plan = draw(sketches.any_plan(walk.oracle.now), label="plan")
    walk.plans.append(plan)
    _submit(walk, plan, supersedes=draw(sketches.RARELY, label="supersedes"))


def submit_again(walk: Walk, draw: Draw) -> None:
    """Submit something known, under its own uid or a new one."""
    if not walk.plans:
        return
    walk.settle()
    walk.advance(timedelta(milliseconds=1))
    plan = at(walk.plans, draw(PICK))
    _submit(walk, plans.again(plan) if draw(st.booleans()) else plan, supersedes=False)


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
        assert standing is None or submitted.root == standing.id
        if standing is None:
            walk.oracle.submit(plan, submitted.root)


def sweep(walk: Walk, draw: Draw) -> None:
    """Hold, resume or cancel a whole root, for choice one that goes on."""
    walk.settle()
    going = [root for root in walk.oracle.roots if not walk.oracle.jobs[root.id].is_over]
    if not walk.oracle.roots:
        return
    root = at(going or walk.oracle.roots, draw(PICK))
    verb = draw(SWEEPS, label="verb")
    was_over = walk.oracle.jobs[root.id].is_over
    assert walk.run(getattr(walk.store, verb)(root.id)) != was_over
    getattr(walk.oracle, verb)(root)
    walk.is_settled = False

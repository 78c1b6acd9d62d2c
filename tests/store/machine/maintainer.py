"""The steps of the maintainer, and of time."""

from datetime import timedelta

from tests.store.machine import random_plans
from tests.store.machine.walk import Walk

SECONDS = (1, 7, 41, 3600)


def reap(walk: Walk) -> None:
    """Reap a worker: after an observation, with proof, or with an outdated observation."""
    if not walk.workers:
        return
    worker = walk.pick(walk.busy())
    guard = walk.chance.choices(["seen", "proven", "late"], [3, 2, 1])[0]
    versions = {one.worker: one.version for one in walk.run(walk.store.list_heartbeats())}
    assert set(versions) == {one.session.worker for one in walk.workers}
    seen = versions[worker.session.worker]
    given = {"seen": seen, "proven": None, "late": seen._replace(heartbeats=seen.heartbeats - 1)}[
        guard
    ]
    charge_losses = random_plans.is_chosen(walk.chance, 0.8)
    call = walk.store.reap(worker.session.worker, version=given, charge_losses=charge_losses)
    reaped = walk.run(call)
    assert reaped.was_reaped == (guard != "late")
    if reaped.was_reaped:
        failed = walk.reap(worker, is_proven=guard == "proven", charge_losses=charge_losses)
        assert set(reaped.failed) == failed


def prove(walk: Walk) -> None:
    """Prove the death of a worker that was reaped without proof."""
    if walk.former:
        worker = walk.pick(walk.former[::-1])
        walk.run(walk.store.reap(worker.session.worker, version=None))
        walk.oracle.prove([worker])


def drain(walk: Walk) -> None:
    """Drain a worker."""
    if walk.workers:
        worker = walk.pick(walk.workers)
        assert walk.run(walk.store.drain(worker.session.worker))
        worker.is_draining = True


def pass_time(walk: Walk) -> None:
    """Advance the clock, and promote the jobs that are due."""
    walk.propagate_all()
    walk.advance(timedelta(seconds=walk.chance.choice(SECONDS)))
    if random_plans.is_chosen(walk.chance, 0.7):
        walk.run(walk.harness.promote())
        walk.oracle.promote()


def expire(walk: Walk) -> None:
    """Advance the clock, and end jobs past their deadline."""
    walk.propagate_all()
    walk.advance(timedelta(seconds=walk.chance.choice(SECONDS)))
    walk.run(walk.harness.expire())
    walk.is_propagated = False
    if walk.oracle.expire():
        # The maintainer carries out the cancellation of a run.
        walk.propagate_all()


def propagate_some(walk: Walk) -> None:
    """Propagate a few ends."""
    limit = walk.chance.randint(1, 3)
    walk.is_propagated = walk.run(walk.store.propagate(limit)) == 0

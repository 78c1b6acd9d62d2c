"""The steps of the maintainer, and of time."""

from datetime import timedelta

from hypothesis import strategies as st

from tests.store.machine.walk import PICK, Draw, Walk, at

GUARDS = st.sampled_from(["seen", "proven", "late", "seen"])
SECONDS = st.sampled_from([1, 7, 3600, 41])


def reap(walk: Walk, draw: Draw) -> None:
    """Take a worker's claims back: unless it has beaten since, or however that is."""
    if not walk.hands:
        return
    hand = at(walk.busy(), draw(PICK))
    guard = draw(GUARDS, label="guard")
    beats = {one.worker: one.beats for one in walk.run(walk.store.look())}
    assert set(beats) == {one.session.worker for one in walk.hands}
    seen = beats[hand.session.worker]
    given = {"seen": seen, "proven": None, "late": seen - 1}[guard]
    reaped = walk.run(walk.store.reap(hand.session.worker, beats=given))
    assert reaped.was_reaped == (guard != "late")
    if reaped.was_reaped:
        assert set(reaped.failed) == walk.bury(hand, is_proven=guard == "proven")


def prove(walk: Walk, draw: Draw) -> None:
    """Bring proof for a worker that was reaped without."""
    if walk.gone:
        hand = at(walk.gone[::-1], draw(PICK))
        walk.run(walk.store.reap(hand.session.worker, beats=None))
        walk.oracle.prove([hand])


def drain(walk: Walk, draw: Draw) -> None:
    """Let a worker claim no more."""
    if walk.hands:
        hand = at(walk.hands, draw(PICK))
        assert walk.run(walk.store.drain(hand.session.worker))
        hand.is_draining = True


def pass_time(walk: Walk, draw: Draw) -> None:
    """Turn the clock, and promote what is due by then."""
    walk.settle()
    walk.advance(timedelta(seconds=draw(SECONDS, label="seconds")))
    if draw(st.booleans(), label="promotes"):
        walk.run(walk.harness.promote())
        walk.oracle.promote()


def expire(walk: Walk, draw: Draw) -> None:
    """End what is past its deadline, perhaps after time has passed."""
    walk.settle()
    walk.advance(timedelta(seconds=draw(SECONDS, label="seconds")))
    walk.run(walk.harness.expire())
    walk.oracle.expire()
    walk.is_settled = False


def settle_a_little(walk: Walk, draw: Draw) -> None:
    """Pass on a few ends."""
    limit = draw(st.integers(1, 3), label="limit")
    walk.is_settled = walk.run(walk.store.settle(limit)) == 0

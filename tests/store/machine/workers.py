"""The steps of workers: come, claim, end, hand back, go; and each call once more."""

from collections.abc import Sequence

import pytest
from hypothesis import strategies as st

from tests.store.behaviour.worker import end_of, mint, mint_boot
from tests.store.machine import sketches
from tests.store.machine.walk import PICK, Draw, Hand, Walk, at
from workron.core import errors
from workron.core.ids import ClaimId
from workron.store.protocol import Answer, Claimed, Outcome, Registration

NAMES = st.sampled_from(["anna", "ben", "cleo", "dora"])
FATES = st.sampled_from([None, *Outcome])
DELAYS = st.sampled_from([0.0, 5.5])


def register(walk: Walk, draw: Draw) -> None:
    """Enter a worker; an older boot of its name is dead."""
    enter(walk, draw(NAMES, label="name"), draw(sketches.POOLS, label="pool"))


def enter(walk: Walk, name: str, pool: str) -> None:
    token = walk.run(walk.harness.token(pool))
    asked = Registration(token, name, mint_boot(), slots=4)
    session = walk.run(walk.store.register(asked))
    for older in walk.namesakes(walk.hands, pool, name):
        walk.bury(older, is_proven=True)
    walk.oracle.prove(walk.namesakes(walk.gone, pool, name))
    walk.hands.append(Hand(pool, name, registration=asked, session=session))


def register_again(walk: Walk, draw: Draw) -> None:
    """Repeat a registration: it is the same worker."""
    if walk.hands:
        hand = at(walk.hands, draw(PICK))
        session = walk.run(walk.store.register(hand.registration))
        assert session.worker == hand.session.worker
        hand.session = session


def claim(walk: Walk, draw: Draw) -> None:
    """Claim a few."""
    if walk.hands:
        hand = at(walk.hands, draw(PICK))
        _claim(walk, hand, mint(draw(st.integers(1, 3), label="count")))


def claim_again(walk: Walk, draw: Draw) -> None:
    """Repeat a claim, unless some of it is over: no worker would."""
    hands = [hand for hand in walk.hands if hand.last_claim]
    if hands:
        hand = at(hands, draw(PICK))
        if not any(one in walk.oracle.fates for one in hand.last_claim):
            _claim(walk, hand, hand.last_claim)


def _claim(walk: Walk, hand: Hand, wanted: Sequence[ClaimId]) -> Sequence[Claimed]:
    rows = walk.run(walk.store.claim(hand.session.key, wanted))
    _take(walk, hand, wanted, rows)
    return rows


def _take(walk: Walk, hand: Hand, wanted: Sequence[ClaimId], rows: Sequence[Claimed]) -> None:
    held = {job.claim: job.id for job in walk.oracle.held(hand)}
    known = {claim: held[claim] for claim in wanted if claim in held}
    if known:
        assert {row.claim: row.job for row in rows} == known
        return
    expected = {job.id for job in walk.oracle.claimable(hand, len(wanted))}
    possible = {job.id for job in walk.oracle.claimable(hand, len(walk.oracle.jobs))}
    taken = {row.job for row in rows}
    assert len(rows) == len(taken) <= len(wanted)
    assert taken == expected or (not walk.is_settled and taken <= possible)
    for row in rows:
        walk.oracle.take(hand, row)
    hand.claimed += rows
    hand.last_claim = wanted


def work(walk: Walk, draw: Draw) -> None:
    """Let all claim, and end what is not to be kept."""
    for hand in walk.hands:
        walk.settle()
        rows = _claim(walk, hand, mint(2))
        fated = [(row, draw(FATES, label=row.name)) for row in rows]
        delay = draw(DELAYS, label="delay")
        hand.last_ends = [end_of(row, fate, delay_seconds=delay) for row, fate in fated if fate]
        _complete(walk, hand, 0)


def complete(walk: Walk, draw: Draw) -> None:
    """Report on a few claims, old ones too, and claim anew."""
    hands = [hand for hand in walk.busy() if hand.claimed]
    if hands:
        hand = at(hands, draw(PICK))
        delay = draw(DELAYS, label="delay")
        hand.last_ends = [
            end_of(row, draw(FATES, label=row.name) or Outcome.RETRY, delay_seconds=delay)
            for row in _some(hand, draw)
        ]
        _complete(walk, hand, draw(st.integers(0, 2), label="count"))


def complete_again(walk: Walk, draw: Draw) -> None:
    """Repeat a report."""
    hands = [hand for hand in walk.hands if hand.last_ends]
    if hands:
        _complete(walk, at(hands, draw(PICK)), draw(st.integers(0, 2), label="count"))


def _some(hand: Hand, draw: Draw) -> list[Claimed]:
    """Pick up to three claims of a hand, the newest for choice."""
    picks = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3), label="newest")
    newest = hand.claimed[::-1]
    return list({row.claim: row for row in (at(newest, pick) for pick in picks)}.values())


def _complete(walk: Walk, hand: Hand, count: int) -> None:
    expected = [walk.oracle.answer(hand, end.claim) for end in hand.last_ends]
    wanted = mint(count)
    completed = walk.run(walk.store.complete(hand.session.key, hand.last_ends, wanted))
    for end, answer, right in zip(hand.last_ends, completed.answers, expected, strict=True):
        _check_answer(answer, right)
        if answer is Answer.ACCEPTED:
            walk.oracle.complete(end)
            walk.is_settled = False
    if wanted:
        _take(walk, hand, wanted, completed.claimed)


def release(walk: Walk, draw: Draw) -> None:
    """Hand a few claims back, or try to."""
    hands = [hand for hand in walk.busy() if hand.claimed]
    if not hands:
        return
    hand = at(hands, draw(PICK))
    chosen = [row.claim for row in _some(hand, draw)]
    expected = [walk.oracle.answer(hand, claim) for claim in chosen]
    answers = walk.run(walk.store.release(hand.session.key, chosen))
    for claimed, answer, right in zip(chosen, answers, expected, strict=True):
        _check_answer(answer, right)
        if answer is Answer.ACCEPTED:
            walk.oracle.release(claimed)
            walk.is_settled = False


def _check_answer(answer: Answer, right: Answer) -> None:
    """A claim that was handed back and one that was ended may be told apart, or not."""
    if right is Answer.ALREADY:
        assert answer is not Answer.ACCEPTED
    else:
        assert answer is right


def beat(walk: Walk, draw: Draw) -> None:
    """Learn what is held, and how it is marked."""
    if walk.hands:
        hand = at(walk.busy(), draw(PICK))
        answer = walk.run(walk.store.beat(hand.session.key))
        assert {(held.job, held.claim, held.mark) for held in answer.held} == {
            (job.id, job.claim, job.mark) for job in walk.oracle.held(hand)
        }
        assert answer.is_draining == hand.is_draining


def leave(walk: Walk, draw: Draw) -> None:
    """Go; what is still held is released."""
    if walk.hands:
        hand = at(walk.hands, draw(PICK))
        walk.run(walk.store.leave(hand.session.key))
        for job in walk.oracle.held(hand):
            assert job.claim is not None
            walk.oracle.release(job.claim)
        walk.forget(hand)


def act_when_gone(walk: Walk, draw: Draw) -> None:
    """Try to go on after having been forgotten."""
    if walk.gone:
        hand = at(walk.gone, draw(PICK))
        key, ends = hand.session.key, [end_of(row) for row in hand.claimed]
        for call in (
            walk.store.beat(key),
            walk.store.claim(key, mint()),
            walk.store.complete(key, ends),
            walk.store.release(key, [row.claim for row in hand.claimed]),
        ):
            with pytest.raises(errors.SessionError):
                walk.run(call)

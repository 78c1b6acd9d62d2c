"""The steps of workers: come, claim, end, hand back, go; and each call once more."""

from collections.abc import Sequence

import pytest

from tests.store.behaviour.worker import end_of, mint, mint_boot
from tests.store.machine import sketches
from tests.store.machine.walk import Hand, Walk
from workron.core import errors
from workron.core.ids import ClaimId
from workron.store.types import (
    AttemptReport,
    ClaimedJob,
    LossKind,
    Outcome,
    Registration,
    ReportResult,
)

NAMES = ("anna", "ben", "cleo", "dora")
DELAYS = (0.0, 5.5)


def register(walk: Walk) -> None:
    """Enter a worker; an older boot of its name is dead."""
    pool = "large" if sketches.is_now(walk.chance, 0.2) else "default"
    enter(walk, walk.chance.choice(NAMES), pool)


def enter(walk: Walk, name: str, pool: str) -> None:
    token = walk.run(walk.harness.token(pool))
    asked = Registration(token, name, mint_boot(), slots=4)
    session = walk.run(walk.store.register(asked))
    walk.run(walk.store.heartbeat(session.key))
    for older in walk.namesakes(walk.hands, pool, name):
        walk.bury(older, is_proven=True)
    walk.oracle.prove(walk.namesakes(walk.gone, pool, name))
    walk.hands.append(Hand(pool, name, registration=asked, session=session))


def register_again(walk: Walk) -> None:
    """Repeat a registration: it is the same worker."""
    if walk.hands:
        hand = walk.pick(walk.hands)
        session = walk.run(walk.store.register(hand.registration))
        assert session.worker == hand.session.worker
        hand.session = session


def claim(walk: Walk) -> None:
    """Claim a few."""
    if walk.hands:
        hand = walk.pick(walk.hands)
        _claim(walk, hand, mint(walk.chance.randint(1, 3)))


def claim_again(walk: Walk) -> None:
    """Repeat a claim, unless some of it is over: no worker would."""
    hands = [hand for hand in walk.hands if hand.last_claim]
    if hands:
        hand = walk.pick(hands)
        if not any(one in walk.oracle.fates for one in hand.last_claim):
            _claim(walk, hand, hand.last_claim)


def _claim(walk: Walk, hand: Hand, wanted: Sequence[ClaimId]) -> Sequence[ClaimedJob]:
    rows = walk.run(walk.store.claim(hand.session.key, wanted))
    _take(walk, hand, wanted, rows)
    return rows


def _take(walk: Walk, hand: Hand, wanted: Sequence[ClaimId], rows: Sequence[ClaimedJob]) -> None:
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


def work(walk: Walk) -> None:
    """Let all claim, and end what is not to be kept."""
    for hand in walk.hands:
        walk.settle()
        rows = _claim(walk, hand, mint(2))
        hand.last_ends = [_end(walk, row) for row in rows if sketches.is_now(walk.chance, 0.5)]
        _complete(walk, hand, 0)


def work_long(walk: Walk) -> None:
    """Let new workers of both pools run what there is, some levels deep."""
    for pool in ("default", "large"):
        enter(walk, "emil", pool)
        hand = walk.hands[-1]
        for _ in range(5):
            walk.settle()
            hand.last_ends = [_end(walk, row) for row in _claim(walk, hand, mint(6))]
            _complete(walk, hand, 0)


def complete(walk: Walk) -> None:
    """Report on a few claims, old ones too, and claim anew."""
    hands = [hand for hand in walk.busy() if hand.claimed]
    if hands:
        hand = walk.pick(hands)
        hand.last_ends = [_end(walk, row) for row in _some(walk, hand)]
        _complete(walk, hand, walk.chance.randrange(3))


def complete_again(walk: Walk) -> None:
    """Repeat a report."""
    hands = [hand for hand in walk.hands if hand.last_ends]
    if hands:
        _complete(walk, walk.pick(hands), walk.chance.randrange(3))


def _end(walk: Walk, row: ClaimedJob) -> AttemptReport:
    outcome = walk.chance.choices(list(Outcome), [4, 3, 2])[0]
    return end_of(row, outcome, delay_seconds=walk.chance.choice(DELAYS))


def _some(walk: Walk, hand: Hand) -> list[ClaimedJob]:
    """Pick up to three of the newest claims of a hand, what is over too."""
    newest = hand.claimed[-5:]
    return walk.chance.sample(newest, min(len(newest), walk.chance.randint(1, 3)))


def _complete(walk: Walk, hand: Hand, count: int) -> None:
    expected = [walk.oracle.answer(hand, end.claim) for end in hand.last_ends]
    wanted = mint(count)
    completed = walk.run(walk.store.complete(hand.session.key, hand.last_ends, wanted))
    for end, answer, right in zip(hand.last_ends, completed.answers, expected, strict=True):
        _check_answer(answer, right)
        if answer is ReportResult.ACCEPTED:
            walk.oracle.complete(end)
            walk.is_settled = False
    if wanted:
        _take(walk, hand, wanted, completed.claimed)


def release(walk: Walk) -> None:
    """Hand a few claims back, or try to."""
    hands = [hand for hand in walk.busy() if hand.claimed]
    if not hands:
        return
    hand = walk.pick(hands)
    chosen = _some(walk, hand)
    expected = [walk.oracle.answer(hand, row.claim) for row in chosen]
    lost = walk.chance.choices([None, *LossKind], [4, 1, 1])[0]
    rights = [row.ref for row in chosen]
    answers = walk.run(walk.store.release(hand.session.key, rights, lost))
    for row, answer, right in zip(chosen, answers, expected, strict=True):
        _check_answer(answer, right)
        if answer is ReportResult.ACCEPTED:
            walk.oracle.release(row.claim, lost)
            walk.is_settled = False


def _check_answer(answer: ReportResult, right: ReportResult) -> None:
    """A claim that was handed back and one that was ended may be told apart, or not."""
    if right is ReportResult.ALREADY:
        assert answer is not ReportResult.ACCEPTED
    else:
        assert answer is right


def beat(walk: Walk) -> None:
    """Learn what is held, and how it is marked."""
    if walk.hands:
        hand = walk.pick(walk.busy())
        answer = walk.run(walk.store.heartbeat(hand.session.key))
        assert {(held.job, held.claim, held.signal) for held in answer.held} == {
            (job.id, job.claim, job.mark) for job in walk.oracle.held(hand)
        }
        assert answer.is_draining == hand.is_draining


def leave(walk: Walk) -> None:
    """Go; what is still held is released."""
    if walk.hands:
        hand = walk.pick(walk.hands)
        walk.run(walk.store.deregister(hand.session.key))
        for job in walk.oracle.held(hand):
            assert job.claim is not None
            walk.oracle.release(job.claim)
        walk.forget(hand)


def act_when_gone(walk: Walk) -> None:
    """Try to go on after having been forgotten."""
    if walk.gone:
        hand = walk.pick(walk.gone)
        key, ends = hand.session.key, [end_of(row) for row in hand.claimed]
        for call in (
            walk.store.heartbeat(key),
            walk.store.claim(key, mint()),
            walk.store.complete(key, ends),
            walk.store.release(key, [row.ref for row in hand.claimed]),
        ):
            with pytest.raises(errors.SessionError):
                walk.run(call)

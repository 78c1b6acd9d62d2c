"""What an agent knows of its claims."""

import random
from datetime import UTC, datetime
from typing import cast

import pytest

from workron.core import errors
from workron.core.ids import ClaimId, Fence, JobId
from workron.store.types import AttemptReport, ClaimedJob, ClaimRef, LossKind, Outcome
from workron_worker.claims import Claims, Disposition, RunningClaim

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def ledger() -> Claims:
    return Claims(random.Random())


def _start(ledger: Claims) -> tuple[RunningClaim, AttemptReport]:
    [claim] = ledger.request(1, _NOW)
    right = ClaimRef(claim, Fence(7))
    claimed = cast("ClaimedJob", type("Claim", (), {"claim": claim, "ref": right})())
    running = ledger.start(claimed, now=0.0)
    return running, AttemptReport(JobId(1), *right, Outcome.SUCCEEDED)


def test_end_is_reported_once_and_known_until_it_was_answered(ledger: Claims) -> None:
    running, end = _start(ledger)
    ledger.end(running, end)
    assert list(ledger.take_reports()) == [end]
    assert list(ledger.take_reports()) == []
    assert ledger.snapshot().known == {end.claim}
    ledger.forget([end.claim])
    assert ledger.snapshot().known == frozenset()


@pytest.mark.parametrize("disposition", [Disposition.REPORT, Disposition.RELEASE])
def test_claim_without_an_end_of_its_own_is_handed_back(
    ledger: Claims, disposition: Disposition
) -> None:
    running, _ = _start(ledger)
    running.disposition = disposition
    ledger.end(running, None)
    assert ledger.take_releases() == {None: [running.job.ref]}


def test_claims_that_were_lost_are_handed_back_apart_by_how_they_fell(ledger: Claims) -> None:
    fates = [
        Disposition.LOST_TOGETHER,
        Disposition.RELEASE,
        Disposition.LOST_ALONE,
        Disposition.LOST_TOGETHER,
    ]
    rights = []
    for disposition in fates:
        running, _ = _start(ledger)
        running.disposition = disposition
        ledger.end(running, None)
        rights.append(running.job.ref)
    assert ledger.take_releases() == {
        LossKind.TOGETHER: [rights[0], rights[3]],
        None: [rights[1]],
        LossKind.ALONE: [rights[2]],
    }
    assert not ledger.count


def test_sent_reports_count_until_the_store_has_answered(ledger: Claims) -> None:
    with ledger.in_flight(2), ledger.in_flight(3):
        assert ledger.count == 5
    assert ledger.count == 0


@pytest.mark.parametrize(
    ("error", "count"),
    [(errors.SessionError("reaped"), 0), (errors.StoreUnreachableError("unavailable"), 2)],
)
def test_sent_reports_count_after_an_error_unless_it_is_an_answer(
    ledger: Claims, error: errors.StoreError, count: int
) -> None:
    with pytest.raises(type(error)), ledger.in_flight(2):
        raise error
    assert ledger.count == count


def test_claim_that_the_store_took_back_is_never_spoken_of(ledger: Claims) -> None:
    running, end = _start(ledger)
    running.disposition = Disposition.DROP
    ledger.end(running, end)
    assert not ledger.count
    assert ledger.snapshot().known == frozenset()


def test_nothing_is_left_to_tell_once_the_session_is_lost(ledger: Claims) -> None:
    ended, end = _start(ledger)
    ledger.end(ended, end)
    ledger.release_unknown([ClaimRef(ledger.request(1, _NOW)[0], Fence(7))])
    running, late = _start(ledger)
    ledger.forget_all()
    assert (list(ledger.take_reports()), ledger.take_releases()) == ([], {})
    ledger.end(running, late)
    assert not ledger.count


def test_claims_have_ids_of_their_own(ledger: Claims) -> None:
    claims: list[ClaimId] = ledger.request(100, _NOW)
    assert len(set(claims)) == 100

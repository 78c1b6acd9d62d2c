"""The steps of workers: register, claim, complete, release, deregister, and repetitions."""

from collections.abc import Sequence

import pytest

from tests.store.behaviour.worker import mint, mint_boot, report_on
from tests.store.machine import random_plans
from tests.store.machine.walk import Walk, WalkWorker
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
    """Register a worker; an older boot of its name is dead."""
    pool = "large" if random_plans.is_chosen(walk.chance, 0.2) else "default"
    enter(walk, walk.chance.choice(NAMES), pool)


def enter(walk: Walk, name: str, pool: str) -> None:
    token = walk.run(walk.harness.token(pool))
    registration = Registration(token, name, mint_boot(), slots=4)
    session = walk.run(walk.store.register(registration))
    walk.run(walk.store.heartbeat(session.key))
    for older in walk.namesakes(walk.workers, pool, name):
        walk.reap(older, is_proven=True)
    walk.oracle.prove(walk.namesakes(walk.former, pool, name))
    walk.workers.append(WalkWorker(pool, name, registration=registration, session=session))


def register_again(walk: Walk) -> None:
    """Repeat a registration: it is the same worker."""
    if walk.workers:
        worker = walk.pick(walk.workers)
        session = walk.run(walk.store.register(worker.registration))
        assert session.worker == worker.session.worker
        worker.session = session


def claim(walk: Walk) -> None:
    """Claim a few jobs."""
    if walk.workers:
        worker = walk.pick(walk.workers)
        _claim(walk, worker, mint(walk.chance.randint(1, 3)))


def claim_again(walk: Walk) -> None:
    """Repeat a claim call, unless one of its claims is over: a worker would not."""
    workers = [worker for worker in walk.workers if worker.last_claim]
    if workers:
        worker = walk.pick(workers)
        if not any(one in walk.oracle.outcomes for one in worker.last_claim):
            _claim(walk, worker, worker.last_claim)


def _claim(walk: Walk, worker: WalkWorker, wanted: Sequence[ClaimId]) -> Sequence[ClaimedJob]:
    rows = walk.run(walk.store.claim(worker.session.key, wanted))
    _check_claimed(walk, worker, wanted, rows)
    return rows


def _check_claimed(
    walk: Walk, worker: WalkWorker, wanted: Sequence[ClaimId], rows: Sequence[ClaimedJob]
) -> None:
    held = {job.claim: job.id for job in walk.oracle.held(worker)}
    known = {claim: held[claim] for claim in wanted if claim in held}
    if known:
        assert {row.claim: row.job for row in rows} == known
        return
    expected = {job.id for job in walk.oracle.claimable(worker, len(wanted))}
    possible = {job.id for job in walk.oracle.claimable(worker, len(walk.oracle.jobs))}
    taken = {row.job for row in rows}
    assert len(rows) == len(taken) <= len(wanted)
    assert taken == expected or (not walk.is_propagated and taken <= possible)
    for row in rows:
        walk.oracle.claim(worker, row)
    worker.claimed += rows
    worker.last_claim = wanted


def work(walk: Walk) -> None:
    """All workers claim, and complete half of their claims."""
    for worker in walk.workers:
        walk.propagate_all()
        rows = _claim(walk, worker, mint(2))
        worker.last_ends = [
            _end(walk, row) for row in rows if random_plans.is_chosen(walk.chance, 0.5)
        ]
        _complete(walk, worker, 0)


def work_long(walk: Walk) -> None:
    """New workers of both pools run all jobs, some levels deep."""
    for pool in ("default", "large"):
        enter(walk, "emil", pool)
        worker = walk.workers[-1]
        for _ in range(5):
            walk.propagate_all()
            worker.last_ends = [_end(walk, row) for row in _claim(walk, worker, mint(6))]
            _complete(walk, worker, 0)


def complete(walk: Walk) -> None:
    """Report on a few claims, also ended ones, and claim again."""
    workers = [worker for worker in walk.busy() if worker.claimed]
    if workers:
        worker = walk.pick(workers)
        worker.last_ends = [_end(walk, row) for row in _some(walk, worker)]
        _complete(walk, worker, walk.chance.randrange(3))


def complete_again(walk: Walk) -> None:
    """Repeat a report."""
    workers = [worker for worker in walk.workers if worker.last_ends]
    if workers:
        _complete(walk, walk.pick(workers), walk.chance.randrange(3))


def _end(walk: Walk, row: ClaimedJob) -> AttemptReport:
    outcome = walk.chance.choices(list(Outcome), [4, 3, 2])[0]
    return report_on(row, outcome, delay_seconds=walk.chance.choice(DELAYS))


def _some(walk: Walk, worker: WalkWorker) -> list[ClaimedJob]:
    """Pick up to three of the newest claims of a worker, also ended ones."""
    newest = worker.claimed[-5:]
    return walk.chance.sample(newest, min(len(newest), walk.chance.randint(1, 3)))


def _complete(walk: Walk, worker: WalkWorker, count: int) -> None:
    expected = [walk.oracle.answer(worker, end.claim) for end in worker.last_ends]
    wanted = mint(count)
    completed = walk.run(walk.store.complete(worker.session.key, worker.last_ends, wanted))
    for end, answer, right in zip(worker.last_ends, completed.answers, expected, strict=True):
        _check_answer(answer, right)
        if answer is ReportResult.ACCEPTED:
            walk.oracle.complete(end)
            walk.is_propagated = False
    if wanted:
        _check_claimed(walk, worker, wanted, completed.claimed)


def release(walk: Walk) -> None:
    """Release a few claims, also ended ones."""
    workers = [worker for worker in walk.busy() if worker.claimed]
    if not workers:
        return
    worker = walk.pick(workers)
    chosen = _some(walk, worker)
    expected = [walk.oracle.answer(worker, row.claim) for row in chosen]
    lost = walk.chance.choices([None, *LossKind], [4, 1, 1])[0]
    refs = [row.ref for row in chosen]
    answers = walk.run(walk.store.release(worker.session.key, refs, lost))
    for row, answer, right in zip(chosen, answers, expected, strict=True):
        _check_answer(answer, right)
        if answer is ReportResult.ACCEPTED:
            walk.oracle.release(row.claim, lost)
            walk.is_propagated = False


def _check_answer(answer: ReportResult, right: ReportResult) -> None:
    """Compare answers; the store may answer ALREADY for a released claim, or STALE."""
    if right is ReportResult.ALREADY:
        assert answer is not ReportResult.ACCEPTED
    else:
        assert answer is right


def heartbeat(walk: Walk) -> None:
    """Send a heartbeat, and compare claims and signals."""
    if walk.workers:
        worker = walk.pick(walk.busy())
        answer = walk.run(walk.store.heartbeat(worker.session.key))
        assert {(held.job, held.claim, held.signal) for held in answer.held} == {
            (job.id, job.claim, job.signal) for job in walk.oracle.held(worker)
        }
        assert answer.is_draining == worker.is_draining


def deregister(walk: Walk) -> None:
    """Deregister; the claims are released."""
    if walk.workers:
        worker = walk.pick(walk.workers)
        walk.run(walk.store.deregister(worker.session.key))
        for job in walk.oracle.held(worker):
            assert job.claim is not None
            walk.oracle.release(job.claim)
        walk.remove(worker)


def act_when_reaped(walk: Walk) -> None:
    """Call as a worker that was reaped."""
    if walk.former:
        worker = walk.pick(walk.former)
        key, ends = worker.session.key, [report_on(row) for row in worker.claimed]
        for call in (
            walk.store.heartbeat(key),
            walk.store.claim(key, mint()),
            walk.store.complete(key, ends),
            walk.store.release(key, [row.ref for row in worker.claimed]),
        ):
            with pytest.raises(errors.SessionError):
                walk.run(call)

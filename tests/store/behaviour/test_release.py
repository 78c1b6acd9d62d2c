"""release: a returned claim costs nothing, unless it was lost."""

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import Worker, mint_refs
from workron.core.states import Reason
from workron.store.types import ClaimedJob, LossKind, ReportResult


async def _lose(worker: Worker, lost: LossKind, *claimed: ClaimedJob) -> list[ReportResult]:
    rights = [one.ref for one in claimed]
    return list(await worker.store.release(worker.session.key, rights, lost))


async def test_released_job_is_queued_and_nothing_is_counted(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job(priority=7))
    assert list(await worker.release(await worker.claim_one())) == [ReportResult.ACCEPTED]
    row = await harness.row(run)
    assert (row.state, row.failures, row.losses, row.priority) == ("Queued", 0, 0, 7)


async def test_second_release_is_answered_with_already(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await worker.release(claimed)
    assert list(await worker.release(claimed)) == [ReportResult.ALREADY]


async def test_second_release_does_not_affect_a_newer_claim(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.release(first)
    second = await worker.claim_one()
    await worker.release(first)
    assert await harness.state(run) == "Running"
    assert await worker.end(second) is ReportResult.ACCEPTED


async def test_release_of_an_ended_claim_changes_nothing(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await worker.end(claimed)
    (answer,) = await worker.release(claimed)
    assert answer is not ReportResult.ACCEPTED
    assert await harness.state(run) == "Succeeded"


async def test_release_is_stale_when_the_claim_was_never_made(worker: Worker) -> None:
    answers = await worker.store.release(worker.session.key, mint_refs(2))
    assert list(answers) == [ReportResult.STALE, ReportResult.STALE]


async def test_release_is_answered_with_already_when_another_worker_repeats_it(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await worker.release(claimed)
    other = await harness.worker("other")
    assert list(await other.release(claimed)) == [ReportResult.ALREADY]


async def test_release_is_stale_when_another_worker_has_the_claim(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    other = await harness.worker("other")
    assert list(await other.release(claimed)) == [ReportResult.STALE]
    assert await harness.state(run) == "Running"


async def test_release_does_not_apply_to_a_later_attempt_with_the_same_claim_id(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.release(first)
    await worker.store.claim(worker.session.key, [first.claim])
    assert list(await worker.release(first)) == [ReportResult.ALREADY]
    assert await harness.state(run) == "Running"


async def test_answers_have_the_order_of_the_claims(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.array(3))
    one, two, three = await worker.claim(3)
    await worker.release(two)
    wanted = [three.ref, *mint_refs(), two.ref, one.ref]
    answers = await worker.store.release(worker.session.key, wanted)
    expected = [
        ReportResult.ACCEPTED,
        ReportResult.STALE,
        ReportResult.ALREADY,
        ReportResult.ACCEPTED,
    ]
    assert list(answers) == expected


async def test_released_attempt_is_listed(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.release(await worker.claim_one())
    (attempt,) = await harness.store.list_attempts(run)
    assert (attempt.attempt, attempt.outcome) == (1, "Released")


async def test_release_of_nothing_has_no_answers(worker: Worker) -> None:
    assert list(await worker.release()) == []


async def test_job_lost_alone_is_charged_a_loss(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    assert await _lose(worker, LossKind.ALONE, await worker.claim_one()) == [ReportResult.ACCEPTED]
    row = await harness.row(run)
    assert (row.state, row.failures, row.losses) == ("Queued", 0, 1)
    (attempt,) = await harness.store.list_attempts(run)
    assert (attempt.attempt, attempt.outcome) == (1, "Lost")


async def test_jobs_lost_together_are_charged_nothing_and_run_alone_next(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.array(2))
    await _lose(worker, LossKind.TOGETHER, *await worker.claim(2))
    assert {row.losses for row in await harness.store.list_jobs(run)} == {0}
    assert len(await worker.claim(2)) == 1
    assert await worker.claim(2) == []


async def test_job_ends_when_it_was_lost_alone_too_often(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(max_losses=1))
    for _ in range(2):
        await _lose(worker, LossKind.ALONE, await worker.claim_one())
    row = await harness.row(run)
    assert (row.state, row.reason, row.losses) == ("Failed", Reason.WORKER_LOST, 2)


async def test_repeated_loss_is_charged_once(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await _lose(worker, LossKind.ALONE, claimed)
    assert await _lose(worker, LossKind.ALONE, claimed) == [ReportResult.STALE]
    assert (await harness.row(run)).losses == 1


async def test_lost_job_is_cancelled_when_its_run_was(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job(max_losses=0))
    claimed = await worker.claim_one()
    await harness.store.cancel(run)
    await _lose(worker, LossKind.ALONE, claimed)
    assert await harness.state(run) == "Cancelled"

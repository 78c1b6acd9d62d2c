"""release: a claim handed back costs nothing."""

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import Worker, mint_rights
from workron.store.protocol import Answer


async def test_released_job_is_queued_and_nothing_is_counted(
    harness: Harness, worker: Worker
) -> None:
    root = await harness.submit(plans.job(priority=7))
    assert list(await worker.release(await worker.claim_one())) == [Answer.ACCEPTED]
    row = await harness.row(root)
    assert (row.state, row.failures, row.losses, row.priority) == ("Queued", 0, 0, 7)


async def test_second_release_is_already_known(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await worker.release(claimed)
    assert list(await worker.release(claimed)) == [Answer.ALREADY]


async def test_second_release_leaves_the_newer_claim_alone(
    harness: Harness, worker: Worker
) -> None:
    root = await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.release(first)
    second = await worker.claim_one()
    await worker.release(first)
    assert await harness.stand(root) == "Running"
    assert await worker.end(second) is Answer.ACCEPTED


async def test_release_of_an_ended_claim_changes_nothing(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await worker.end(claimed)
    (answer,) = await worker.release(claimed)
    assert answer is not Answer.ACCEPTED
    assert await harness.stand(root) == "Succeeded"


async def test_release_is_stale_when_the_claim_was_never_made(worker: Worker) -> None:
    answers = await worker.store.release(worker.session.key, mint_rights(2))
    assert list(answers) == [Answer.STALE, Answer.STALE]


async def test_release_is_known_by_its_claim_whoever_repeats_it(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await worker.release(claimed)
    other = await harness.worker("other")
    assert list(await other.release(claimed)) == [Answer.ALREADY]


async def test_release_is_stale_when_the_claim_is_anothers(
    harness: Harness, worker: Worker
) -> None:
    root = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    other = await harness.worker("other")
    assert list(await other.release(claimed)) == [Answer.STALE]
    assert await harness.stand(root) == "Running"


async def test_release_of_an_attempt_does_not_count_for_a_later_one_of_the_same_claim_id(
    harness: Harness, worker: Worker
) -> None:
    root = await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.release(first)
    await worker.store.claim(worker.session.key, [first.claim])
    assert list(await worker.release(first)) == [Answer.ALREADY]
    assert await harness.stand(root) == "Running"


async def test_answers_stand_in_the_order_of_the_claims(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.array(3))
    one, two, three = await worker.claim(3)
    await worker.release(two)
    wanted = [three.right, *mint_rights(), two.right, one.right]
    answers = await worker.store.release(worker.session.key, wanted)
    expected = [Answer.ACCEPTED, Answer.STALE, Answer.ALREADY, Answer.ACCEPTED]
    assert list(answers) == expected


async def test_released_attempt_is_listed(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.job())
    await worker.release(await worker.claim_one())
    (attempt,) = await harness.store.attempts(root)
    assert (attempt.attempt, attempt.outcome) == (1, "Released")


async def test_nothing_is_answered_when_nothing_is_released(worker: Worker) -> None:
    assert list(await worker.release()) == []

"""A beat that meets a claim of its worker: it looks no further back than to what is held."""

from tests.store.behaviour import plans
from tests.store.postgres.stage import Stage


async def _beat_while_it_claims(stage: Stage) -> int:
    await stage.submit(plans.array(2))
    worker = await stage.worker()
    twin = await stage.twin(worker)
    await worker.begin()
    await worker.claim_one()
    for _ in range(8):
        await twin.heartbeat()
    await worker.commit()
    return len((await twin.heartbeat()).held)


async def test_beat_tells_of_a_claim_that_was_on_its_way_for_long(stage: Stage) -> None:
    assert await _beat_while_it_claims(stage) == 1


async def test_claim_that_was_on_its_way_is_forgotten_when_its_row_is_not_held(
    stage: Stage,
) -> None:
    await stage.without("claims_since")
    assert await _beat_while_it_claims(stage) == 0


async def test_claim_that_waits_for_a_beat_is_told_of_by_the_next_one(stage: Stage) -> None:
    await stage.submit(plans.array(2))
    worker = await stage.worker()
    twin = await stage.twin(worker)
    await twin.begin()
    for _ in range(4):
        await twin.heartbeat()
    claiming = await stage.start(worker, worker.claim_one())
    assert not claiming.done()
    await twin.commit()
    claimed = await claiming
    assert [one.claim for one in (await twin.heartbeat()).held] == [claimed.claim]

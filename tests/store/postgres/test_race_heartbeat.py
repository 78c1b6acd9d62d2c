"""A heartbeat and a concurrent claim of the same worker."""

from tests.store.behaviour import plans
from tests.store.postgres.stage import Stage


async def _heartbeat_while_it_claims(stage: Stage) -> int:
    await stage.submit(plans.array(2))
    worker = await stage.worker()
    twin = await stage.twin(worker)
    await worker.begin()
    await worker.claim_one()
    for _ in range(8):
        await twin.heartbeat()
    await worker.commit()
    return len((await twin.heartbeat()).held)


async def test_heartbeat_returns_a_claim_when_its_transaction_was_long(stage: Stage) -> None:
    assert await _heartbeat_while_it_claims(stage) == 1


async def test_heartbeat_misses_a_claim_when_the_row_is_not_locked(
    stage: Stage,
) -> None:
    await stage.without("claims_since")
    assert await _heartbeat_while_it_claims(stage) == 0


async def test_next_heartbeat_returns_a_claim_when_it_waited_for_one(stage: Stage) -> None:
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

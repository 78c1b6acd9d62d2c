"""Output that is written while its claim ends: no chunk is stored after the end."""

import asyncio

import pytest

from tests.store.behaviour import plans
from tests.store.postgres.stage import Stage
from workron.core import errors, payloads
from workron.store.types import ReportResult


async def _written(stage: Stage) -> int:
    return int(await stage.sql.fetchval("SELECT count(*) FROM workron.output"))


async def _write_while_it_is_released(stage: Stage) -> int:
    """Return how many chunks came after the claim was released."""
    await stage.submit(plans.job())
    worker = await stage.worker()
    twin, claimed = await stage.twin(worker), await worker.claim_one()
    await worker.begin()
    await worker.store.append_output(worker.session.key, claimed.ref, 0, b"text")
    releasing = await stage.start(twin, twin.release(claimed))
    before = await _written(stage) if releasing.done() else 1
    await worker.commit()
    await releasing
    return await _written(stage) - before


async def test_output_is_complete_when_the_claim_is_released(stage: Stage) -> None:
    assert await _write_while_it_is_released(stage) == 0


async def test_output_comes_after_its_attempt_when_it_does_not_lock_the_claim(
    stage: Stage,
) -> None:
    await stage.without("output")
    assert await _write_while_it_is_released(stage) == 1


async def _write_after_the_release(stage: Stage) -> ReportResult:
    await stage.submit(plans.job())
    worker = await stage.worker()
    twin, claimed = await stage.twin(worker), await worker.claim_one()
    await worker.begin()
    await worker.release(claimed)
    writing = await stage.start(
        twin, twin.store.append_output(twin.session.key, claimed.ref, 0, b"text")
    )
    await worker.commit()
    return await writing


async def test_output_is_stale_when_the_claim_was_released_just_before(stage: Stage) -> None:
    assert await _write_after_the_release(stage) is ReportResult.STALE
    assert await _written(stage) == 0


async def test_output_of_an_ended_attempt_is_stored_when_the_claim_is_not_checked(
    stage: Stage,
) -> None:
    await stage.without("output")
    assert await _write_after_the_release(stage) is ReportResult.ACCEPTED


async def _write_two_at_once(stage: Stage) -> int:
    """Fill an attempt up to its last byte but one, and return how many of two more are stored."""
    await stage.submit(plans.job())
    worker = await stage.worker()
    twin, claimed = await stage.twin(worker), await worker.claim_one()
    store, key, right = worker.store, worker.session.key, claimed.ref
    await store.append_output(key, right, 0, b"x")
    await stage.sql.execute(
        "INSERT INTO workron.output SELECT job, attempt, 1, convert_to(repeat('x', $1), 'UTF8')"
        " FROM workron.output",
        payloads.MAX_STREAM_BYTES - 2,
    )
    await worker.begin()
    await store.append_output(key, right, 2, b"x")
    writing = await stage.start(twin, twin.store.append_output(key, right, 3, b"x"))
    await worker.commit()
    await asyncio.gather(writing, return_exceptions=True)
    return await _written(stage) - 2


async def test_only_one_chunk_is_stored_when_two_exceed_the_limit_together(stage: Stage) -> None:
    assert await _write_two_at_once(stage) == 1


async def test_two_chunks_exceed_the_limit_when_they_do_not_lock_the_claim(
    stage: Stage,
) -> None:
    await stage.without("output")
    assert await _write_two_at_once(stage) == 2


async def test_output_is_refused_when_its_worker_was_reaped_just_before(stage: Stage) -> None:
    await stage.submit(plans.job())
    worker, maintainer = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await maintainer.begin()
    await maintainer.reap(worker.session.worker, version=await maintainer.heartbeat_version(worker))
    writing = await stage.start(
        worker, worker.store.append_output(worker.session.key, claimed.ref, 0, b"text")
    )
    await maintainer.commit()
    with pytest.raises(errors.SessionError):
        await writing
    assert await _written(stage) == 0


async def test_reap_waits_when_output_is_being_written(stage: Stage) -> None:
    await stage.submit(plans.job())
    worker, maintainer = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.store.append_output(worker.session.key, claimed.ref, 0, b"text")
    sign = await maintainer.heartbeat_version(worker)
    reaping = await stage.start(maintainer, maintainer.reap(worker.session.worker, version=sign))
    assert not reaping.done()
    await worker.commit()
    assert (await reaping).was_reaped

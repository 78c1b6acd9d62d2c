"""append_output and output: bytes, in order, from the claim that is current."""

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import Worker, mint_rights
from workron.core import errors
from workron.store.protocol import Answer, Claimed

ODD = bytes(range(256))


async def _append(worker: Worker, claimed: Claimed, chunk: int, data: bytes) -> Answer:
    return await worker.store.append_output(worker.session.key, claimed.right, chunk, data)


async def test_chunks_are_joined_in_order(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    for chunk, data in [(0, b"a"), (2, b"c"), (1, ODD)]:
        assert await _append(worker, claimed, chunk, data) is Answer.ACCEPTED
    assert await harness.store.output(root) == b"a" + ODD + b"c"


async def test_order_is_that_of_numbers_when_there_are_many_chunks(
    harness: Harness, worker: Worker
) -> None:
    root = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    for chunk in range(12):
        await _append(worker, claimed, chunk, b"%d," % chunk)
    assert await harness.store.output(root) == b"0,1,2,3,4,5,6,7,8,9,10,11,"


async def test_same_chunk_counts_once(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await _append(worker, claimed, 0, b"first")
    assert await _append(worker, claimed, 0, b"second") is Answer.ALREADY
    assert await harness.store.output(root) == b"first"


async def test_chunk_is_stale_when_the_claim_was_taken_back(
    harness: Harness, worker: Worker
) -> None:
    root = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await _append(worker, claimed, 0, b"before")
    await worker.release(claimed)
    assert await _append(worker, claimed, 1, b"after") is Answer.STALE
    assert await harness.store.output(root) == b"before"


async def test_chunk_is_stale_when_the_claim_was_never_made(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job())
    await worker.claim_one()
    (unknown,) = mint_rights()
    answer = await worker.store.append_output(worker.session.key, unknown, 0, b"x")
    assert answer is Answer.STALE


async def test_chunk_is_stale_when_a_later_attempt_has_the_same_claim_id(
    harness: Harness, worker: Worker
) -> None:
    root = await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.release(first)
    await worker.store.claim(worker.session.key, [first.claim])
    assert await _append(worker, first, 0, b"old") is Answer.STALE
    assert await harness.store.output(root) == b""


async def test_chunk_is_stale_when_the_claim_is_anothers(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    other = await harness.worker("other")
    assert await _append(other, claimed, 0, b"x") is Answer.STALE
    assert await harness.store.output(root) == b""


async def test_chunk_is_refused_when_the_worker_was_reaped(
    harness: Harness, worker: Worker
) -> None:
    root = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.reap(worker)
    with pytest.raises(errors.SessionError):
        await _append(worker, claimed, 0, b"x")
    assert await harness.store.output(root) == b""


async def test_output_comes_with_the_end(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), output=ODD)
    assert await harness.store.output(root) == ODD


async def test_output_is_that_of_the_newest_attempt_with_any(
    harness: Harness, worker: Worker
) -> None:
    root = await harness.submit(plans.job())
    for chunk in (b"first", b"second", b""):
        claimed = await worker.claim_one()
        if chunk:
            await _append(worker, claimed, 0, chunk)
        await worker.release(claimed)
    assert await harness.store.output(root) == b"second"


async def test_output_is_empty_when_there_is_none(harness: Harness, worker: Worker) -> None:
    root = await harness.submit(plans.job())
    assert await harness.store.output(root) == b""
    await worker.end(await worker.claim_one())
    assert await harness.store.output(root) == b""

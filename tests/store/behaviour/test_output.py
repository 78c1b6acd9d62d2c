"""append_output and read_output: bytes in order, from the current claim."""

from datetime import timedelta

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import Worker, mint_refs
from workron.core import errors, payloads
from workron.store.types import ClaimedJob, OutputChunk, ReportResult

ODD = bytes(range(256))


async def _append(worker: Worker, claimed: ClaimedJob, chunk: int, data: bytes) -> ReportResult:
    return await worker.store.append_output(worker.session.key, claimed.ref, chunk, data)


async def test_chunks_are_joined_in_order(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    for chunk, data in [(0, b"a"), (2, b"c"), (1, ODD)]:
        assert await _append(worker, claimed, chunk, data) is ReportResult.ACCEPTED
    assert await harness.store.read_output(run) == b"a" + ODD + b"c"


async def test_chunks_are_ordered_by_number(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    for chunk in range(12):
        await _append(worker, claimed, chunk, b"%d," % chunk)
    assert await harness.store.read_output(run) == b"0,1,2,3,4,5,6,7,8,9,10,11,"


async def test_repeated_chunk_counts_once(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await _append(worker, claimed, 0, b"first")
    assert await _append(worker, claimed, 0, b"second") is ReportResult.ALREADY
    assert await harness.store.read_output(run) == b"first"


async def test_chunk_is_stale_when_the_claim_was_reaped(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await _append(worker, claimed, 0, b"before")
    await worker.release(claimed)
    assert await _append(worker, claimed, 1, b"after") is ReportResult.STALE
    assert await harness.store.read_output(run) == b"before"


async def test_chunk_is_stale_when_the_claim_was_never_made(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job())
    await worker.claim_one()
    (unknown,) = mint_refs()
    answer = await worker.store.append_output(worker.session.key, unknown, 0, b"x")
    assert answer is ReportResult.STALE


async def test_chunk_is_stale_when_a_later_attempt_has_the_same_claim_id(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.release(first)
    await worker.store.claim(worker.session.key, [first.claim])
    assert await _append(worker, first, 0, b"old") is ReportResult.STALE
    assert await harness.store.read_output(run) == b""


async def test_chunk_is_stale_when_another_worker_has_the_claim(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    other = await harness.worker("other")
    assert await _append(other, claimed, 0, b"x") is ReportResult.STALE
    assert await harness.store.read_output(run) == b""


async def test_chunk_is_rejected_when_the_worker_was_reaped(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.reap(worker)
    with pytest.raises(errors.SessionError):
        await _append(worker, claimed, 0, b"x")
    assert await harness.store.read_output(run) == b""


async def test_output_is_stored_with_the_end(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), output=ODD)
    assert await harness.store.read_output(run) == ODD


async def test_output_is_that_of_the_newest_attempt_that_has_any(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    for chunk in (b"first", b"second", b""):
        claimed = await worker.claim_one()
        if chunk:
            await _append(worker, claimed, 0, chunk)
        await worker.release(claimed)
    assert await harness.store.read_output(run) == b"second"


async def test_output_is_empty_when_there_is_none(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    assert await harness.store.read_output(run) == b""
    await worker.end(await worker.claim_one())
    assert await harness.store.read_output(run) == b""


async def test_output_of_the_end_follows_the_chunks(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await _append(worker, claimed, 0, ODD)
    await _append(worker, claimed, 1, b"more")
    await worker.end(claimed, output=b"the end")
    assert await harness.store.read_output(run) == ODD + b"more" + b"the end"


@pytest.mark.parametrize(
    ("last", "shown"),
    [(0, b""), (3, b"end"), (7, b"the end"), (8, b"cthe end"), (10, b"bbcthe end"), (99, None)],
)
async def test_last_bytes_of_an_output_are_read(
    harness: Harness, worker: Worker, last: int, shown: bytes | None
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    for chunk, data in enumerate((b"a", b"bb", b"c")):
        await _append(worker, claimed, chunk, data)
    await worker.end(claimed, output=b"the end")
    given = await harness.store.read_output(run, last=last)
    assert given == (b"abbcthe end" if shown is None else shown)


async def test_chunks_are_read_from_a_number_on_and_the_end_is_last(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    for chunk, data in enumerate((b"a", ODD, b"c")):
        await _append(worker, claimed, chunk, data)
    assert await harness.store.read_output_chunks(run, 1, 1) == [
        OutputChunk(1, ODD),
        OutputChunk(2, b"c"),
    ]
    assert await harness.store.read_output_chunks(run, 1, 3) == []
    await worker.end(claimed, output=b"end")
    assert await harness.store.read_output_chunks(run, 1, 3) == [
        OutputChunk(payloads.MAX_CHUNKS, b"end")
    ]
    assert await harness.store.read_output_chunks(run, 1, payloads.MAX_CHUNKS) == [
        OutputChunk(payloads.MAX_CHUNKS, b"end")
    ]
    assert await harness.store.read_output_chunks(run, 1, payloads.MAX_CHUNKS + 1) == []


async def test_chunks_are_those_of_one_attempt(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    first = await worker.claim_one()
    await _append(worker, first, 0, b"first")
    await worker.retry(first, delay_seconds=0)
    await harness.advance(timedelta(seconds=1))
    await harness.promote()
    second = await worker.claim_one()
    await _append(worker, second, 0, b"second")
    assert await harness.store.read_output_chunks(run, 1) == [OutputChunk(0, b"first")]
    assert await harness.store.read_output_chunks(run, 2) == [OutputChunk(0, b"second")]
    assert await harness.store.read_output_chunks(run, 3) == []


async def test_chunks_are_read_in_pages_without_gaps(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed, count = await worker.claim_one(), payloads.CHUNKS_PER_READ + 1
    for chunk in range(count):
        await _append(worker, claimed, chunk, b"%d" % chunk)
    await worker.end(claimed, output=b"end")
    first = await harness.store.read_output_chunks(run, 1)
    rest = await harness.store.read_output_chunks(run, 1, first[-1].chunk + 1)
    assert len(first) == payloads.CHUNKS_PER_READ
    assert [one.data for one in [*first, *rest]] == [b"%d" % one for one in range(count)] + [b"end"]


@pytest.mark.parametrize("chunk", [payloads.MAX_CHUNKS, 2**31 - 1])
async def test_chunk_with_too_high_a_number_is_rejected(
    harness: Harness, worker: Worker, chunk: int
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    with pytest.raises(errors.StoreDataError, match="range is 0 to 16383"):
        await _append(worker, claimed, chunk, b"x")
    assert await _append(worker, claimed, payloads.MAX_CHUNKS - 1, b"last") is ReportResult.ACCEPTED
    assert await harness.store.read_output(run) == b"last"


async def test_output_limit_applies_to_each_attempt(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed, full = await worker.claim_one(), b"x" * payloads.MAX_CHUNK_BYTES
    chunks = payloads.MAX_STREAM_BYTES // payloads.MAX_CHUNK_BYTES
    for chunk in range(chunks):
        assert await _append(worker, claimed, chunk, full) is ReportResult.ACCEPTED
    with pytest.raises(errors.StoreDataError, match="attempt is 67108864"):
        await _append(worker, claimed, chunks, b"x")
    assert await _append(worker, claimed, 0, full) is ReportResult.ALREADY
    assert await _append(worker, claimed, chunks, b"") is ReportResult.ACCEPTED
    assert len(await harness.store.read_output(run)) == payloads.MAX_STREAM_BYTES
    assert len(await harness.store.read_output(run, last=10)) == 10
    await worker.release(claimed)
    assert await _append(worker, await worker.claim_one(), 0, full) is ReportResult.ACCEPTED

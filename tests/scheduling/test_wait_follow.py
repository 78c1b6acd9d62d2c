"""`follow` yields every part of every attempt, once and in order, until the job ends."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from tests.scheduling.conftest import ManualClock, job, register_worker, submit
from workron.core import errors, payloads
from workron.core.ids import ClaimId, JobId
from workron.scheduling import wait
from workron.scheduling.wait import OutputPart, StoreOutage
from workron.store.api import Store
from workron.store.types import AttemptReport, ClaimedJob, Outcome, Session


class Follower:
    """Follows a job, part by part."""

    def __init__(self, store: Store, clock: ManualClock, run: JobId) -> None:
        self.messages = list[str]()
        self._parts: AsyncIterator[OutputPart] = wait.follow(
            store, run, StoreOutage(clock, self.messages.append, pause_seconds=0)
        )

    async def next(self) -> OutputPart:
        return await anext(self._parts)

    async def rest(self) -> list[OutputPart]:
        return [part async for part in self._parts]


class FakeWorker:
    """A worker whose steps a test calls."""

    def __init__(self, store: Store, session: Session) -> None:
        self._store = store
        self._key = session.key
        self._chunk = 0
        self._claimed: ClaimedJob | None = None

    async def claim(self) -> None:
        [self._claimed] = await self._store.claim(self._key, [ClaimId(uuid.uuid4())])
        self._chunk = 0

    async def write(self, data: bytes) -> None:
        assert self._claimed is not None
        await self._store.append_output(self._key, self._claimed.ref, self._chunk, data)
        self._chunk += 1

    async def end(self, outcome: Outcome = Outcome.SUCCEEDED, kept: bytes = b"") -> None:
        assert self._claimed is not None
        end = AttemptReport(self._claimed.job, *self._claimed.ref, outcome, output=kept)
        await self._store.complete(self._key, [end])


@pytest.fixture
async def worker(store: Store) -> FakeWorker:
    return FakeWorker(store, await register_worker(store))


@pytest.fixture
async def run(store: Store) -> JobId:
    return await submit(store, job("job"))


@pytest.fixture
def follower(store: Store, clock: ManualClock, run: JobId) -> Follower:
    return Follower(store, clock, run)


async def test_parts_arrive_as_they_are_stored(follower: Follower, worker: FakeWorker) -> None:
    first = asyncio.create_task(follower.next())
    await asyncio.sleep(0)
    await worker.claim()
    await worker.write(b"one\0")
    assert await first == OutputPart(1, b"one\0")
    await worker.write(b"two")
    assert await follower.next() == OutputPart(1, b"two")
    await worker.end(kept=b"the end")
    assert await follower.rest() == [OutputPart(1, b"the end")]


async def test_stored_output_comes_first(follower: Follower, worker: FakeWorker) -> None:
    await worker.claim()
    pieces = [b"%d" % number for number in range(2 * payloads.CHUNKS_PER_READ + 1)]
    for piece in pieces:
        await worker.write(piece)
    await worker.end()
    assert [part.data for part in await follower.rest()] == pieces


async def test_next_attempt_is_reported_and_followed(
    follower: Follower, worker: FakeWorker, store: Store, clock: ManualClock
) -> None:
    await worker.claim()
    await worker.write(b"one")
    assert await follower.next() == OutputPart(1, b"one")
    for kept in (b"more of one", b""):
        await worker.end(Outcome.RETRY, kept)
        clock.advance(1)
        await store.promote(10)
        await worker.claim()
    await worker.write(b"three")
    await worker.end()
    assert await follower.rest() == [
        OutputPart(1, b"more of one"),
        OutputPart(2, b""),
        OutputPart(3, b""),
        OutputPart(3, b"three"),
    ]


async def test_only_the_current_attempt_is_followed_when_a_job_was_retried(
    follower: Follower, worker: FakeWorker, store: Store, clock: ManualClock
) -> None:
    await worker.claim()
    await worker.end(Outcome.RETRY, b"one")
    clock.advance(1)
    await store.promote(10)
    await worker.claim()
    await worker.end(kept=b"two")
    assert await follower.rest() == [OutputPart(2, b"two")]


async def test_follow_ends_when_the_job_never_runs(
    follower: Follower, store: Store, run: JobId
) -> None:
    following = asyncio.create_task(follower.rest())
    await asyncio.sleep(0)
    await store.cancel(run)
    assert await following == []


async def test_follow_continues_after_an_outage(
    store: Store, clock: ManualClock, run: JobId, worker: FakeWorker
) -> None:
    await worker.claim()
    await worker.write(b"one")
    await worker.end()
    left = {"get_jobs": 2, "read_output_chunks": 2}

    class UnreachableStore:
        def __getattr__(self, verb: str) -> Callable[..., Any]:
            async def call(*given: Any) -> Any:
                left[verb] = left.get(verb, 0) - 1
                if left[verb] >= 0:
                    raise errors.StoreUnreachableError("db does not answer")
                return await getattr(store, verb)(*given)

            return call

    follower = Follower(cast("Store", UnreachableStore()), clock, run)
    assert await follower.rest() == [OutputPart(1, b"one")]
    assert follower.messages.count("the store answers again") == 2
    assert max(left.values()) < 0

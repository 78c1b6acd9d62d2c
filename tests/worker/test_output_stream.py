"""Output that is stored while its command runs: exact, in order, and only during the claim."""

import asyncio
import dataclasses
import os
import pathlib
import random
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.agent_harness import QUICK_CONFIG, AdjustableClock, AgentHarness
from workron.core import errors, payloads
from workron.core.ids import JobId
from workron.core.states import Reason, State
from workron.store.api import Store
from workron.store.types import OutputChunk, ReportResult
from workron_worker import output_stream
from workron_worker.executor import WINDOW_BYTES
from workron_worker.output_stream import CHUNK_BYTES, OutputStream

_UNAVAILABLE = errors.StoreUnreachableError("the store is unavailable")


class OutputStore:
    """Passes calls to a store; it may be unavailable for output only, or lose its answers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_available = True
        self.lost_answers = 0
        """How many of the next answers are lost."""
        self.calls: list[int] = []
        self._called = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append_output(self, key: Any, ref: Any, chunk: int, data: bytes) -> ReportResult:
        self.calls.append(chunk)
        try:
            if not self.is_available:
                raise _UNAVAILABLE
            answer = await self._store.append_output(key, ref, chunk, data)
        finally:
            self._called.set()
        if self.lost_answers:
            self.lost_answers -= 1
            raise errors.StoreUnreachableError("the answer was lost")
        return answer

    async def wait_for_calls(self, count: int = 1) -> None:
        """Wait for that many calls more."""
        wanted = len(self.calls) + count
        while len(self.calls) < wanted:
            self._called.clear()
            await self._called.wait()


@pytest.fixture
def store(harness: AgentHarness) -> OutputStore:
    return OutputStore(harness.store)


def _binary_file(tmp_path: pathlib.Path, size: int) -> tuple[pathlib.Path, bytes]:
    """Create a file of bytes that are not text, with NUL and without a final line feed."""
    data = random.Random(size).randbytes(size - 2) + b"\0\xff"
    path = tmp_path / "data"
    path.write_bytes(data)
    return path, data


async def _stored(harness: AgentHarness, job: JobId, attempt: int = 1) -> bytes:
    return b"".join(chunk.data for chunk in await harness.store.read_output_chunks(job, attempt))


@pytest.mark.parametrize("size", [2, 1000, CHUNK_BYTES, 3_000_001])
async def test_stream_is_stored_exactly(
    harness: AgentHarness, tmp_path: pathlib.Path, size: int
) -> None:
    path, data = _binary_file(tmp_path, size)
    job = await harness.job(command=f"cat {path}", outputStreamBytes=size, outputLimitBytes=10)
    async with harness.working(await harness.agent()):
        assert (await harness.ended(job)).state is State.SUCCEEDED
    assert await harness.store.read_output(job) == data
    assert (await harness.store.read_output_chunks(job, 1))[-1].chunk < payloads.MAX_CHUNKS


async def test_stream_can_be_read_while_its_command_runs(
    harness: AgentHarness, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    command = f"printf first; cat {tmp_path}/go"
    job = await harness.job(command=command, outputStreamBytes=1000, outputLimitBytes=0)
    store = OutputStore(harness.store)
    async with harness.working(await harness.agent(store=store)):
        await store.wait_for_calls()
        assert await harness.store.read_output(job) == b"first"
        assert (await harness.store.get_jobs([job]))[0].state is State.RUNNING
        await asyncio.to_thread((tmp_path / "go").write_text, " second")
        await harness.ended(job)
    assert await harness.store.read_output(job) == b"first second"


async def test_omission_line_and_tail_follow_when_a_stream_exceeds_its_limit(
    harness: AgentHarness, tmp_path: pathlib.Path
) -> None:
    path, data = _binary_file(tmp_path, 1_000_000)
    job = await harness.job(command=f"cat {path}", outputStreamBytes=400_000, outputLimitBytes=100)
    async with harness.working(await harness.agent()):
        await harness.ended(job)
    line = b"\n[... of 1000000 bytes in all, the last 100 follow ...]\n"
    assert await harness.store.read_output(job) == data[:400_000] + line + data[-100:]


async def test_stream_is_complete_when_its_rest_fits_into_the_tail(
    harness: AgentHarness, tmp_path: pathlib.Path
) -> None:
    path, data = _binary_file(tmp_path, 1100)
    job = await harness.job(command=f"cat {path}", outputStreamBytes=1000, outputLimitBytes=100)
    async with harness.working(await harness.agent()):
        await harness.ended(job)
    assert await harness.store.read_output(job) == data


@pytest.mark.parametrize("tail", [0, 1024 * 1024])
async def test_omission_line_is_stored_for_any_size_of_the_tail(
    harness: AgentHarness, tail: int
) -> None:
    command = "head -c 3000000 /dev/zero"
    job = await harness.job(command=command, outputStreamBytes=10, outputLimitBytes=tail)
    async with harness.working(await harness.agent()):
        assert (await harness.ended(job)).state is State.SUCCEEDED
    stored = await harness.store.read_output(job)
    assert stored.startswith(b"\0" * 10 + b"\n[... of 3000000 bytes in all, the last ")
    assert tail - 200 < len(stored) <= tail + 100


async def test_each_attempt_has_its_own_stream(harness: AgentHarness) -> None:
    command = 'echo "this is $WORKRON_ATTEMPT"; test $WORKRON_ATTEMPT = 2'
    job = await harness.job(command=command, outputStreamBytes=1000, backoff={"initial": "1ms"})
    async with harness.working(await harness.agent()):
        await harness.ended(job)
    assert await harness.store.read_output_chunks(job, 1) == [OutputChunk(0, b"this is 1\n")]
    assert await harness.store.read_output_chunks(job, 2) == [OutputChunk(0, b"this is 2\n")]
    assert await harness.store.read_output(job) == b"this is 2\n"


async def test_listener_receives_output_that_is_streamed(
    harness: AgentHarness, tmp_path: pathlib.Path
) -> None:
    path, data = _binary_file(tmp_path, 1_000_000)
    job = await harness.job(command=f"cat {path}", outputStreamBytes=10, outputLimitBytes=10)
    async with harness.working(await harness.agent()):
        await harness.ended(job)
    assert harness.collector.received == data


async def test_chunk_is_stored_once_when_its_answer_was_lost(
    harness: AgentHarness, store: OutputStore, tmp_path: pathlib.Path
) -> None:
    path, data = _binary_file(tmp_path, 1_000_000)
    store.lost_answers = 2
    job = await harness.job(command=f"cat {path}", outputStreamBytes=1_000_000, outputLimitBytes=0)
    async with harness.working(await harness.agent(store=store)):
        await harness.ended(job)
    assert store.calls[:2] == [0, 0]
    assert await harness.store.read_output(job) == data


async def test_command_blocks_and_no_output_is_lost_when_the_store_is_unavailable(
    harness: AgentHarness, tmp_path: pathlib.Path
) -> None:
    path, data = _binary_file(tmp_path, 3_000_000)
    job = await harness.job(
        command=f"cat {path}; touch {tmp_path}/done",
        outputStreamBytes=3_000_000,
        outputLimitBytes=0,
    )
    store = OutputStore(harness.store)
    store.is_available = False
    async with harness.working(await harness.agent(store=store)):
        await store.wait_for_calls(4)
        assert not (tmp_path / "done").exists()
        store.is_available = True
        await harness.ended(job)
    assert (tmp_path / "done").exists()
    assert await harness.store.read_output(job) == data


async def test_command_does_not_block_when_its_stream_limit_is_reached(
    harness: AgentHarness, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "done")
    command = f"head -c 3000000 /dev/zero; echo done > {tmp_path}/done; echo end"
    job = await harness.job(command=command, outputStreamBytes=WINDOW_BYTES, outputLimitBytes=4)
    store = OutputStore(harness.store)
    store.is_available = False
    async with harness.working(await harness.agent(store=store)):
        assert await asyncio.to_thread((tmp_path / "done").read_text) == "done\n"
        assert await harness.store.read_output(job) == b""
        store.is_available = True
        await harness.ended(job)
    stored = await harness.store.read_output(job)
    assert stored.startswith(b"\0" * WINDOW_BYTES + b"\n[... of 3000004 bytes in all")
    assert stored.endswith(b"]\nend\n")


async def test_command_never_blocks_when_it_does_not_stream(harness: AgentHarness) -> None:
    job = await harness.job(command="head -c 3000000 /dev/zero; echo end", outputLimitBytes=4)
    store = OutputStore(harness.store)
    store.is_available = False
    async with harness.working(await harness.agent(store=store)):
        await harness.ended(job)
    assert store.calls == []
    assert await harness.store.read_output(job) == b"end\n"


async def test_nothing_is_stored_when_the_claim_was_reaped(
    harness: AgentHarness, store: OutputStore
) -> None:
    command = """
    if [ "$WORKRON_ATTEMPT" = 2 ]; then echo second; exit 0; fi
    trap 'echo end; exit 0' TERM
    echo first
    sleep 1000 & wait
    """
    job = await harness.job(command=command, outputStreamBytes=1000)
    async with harness.working(await harness.agent(store=store)):
        await store.wait_for_calls()
        [worker] = await harness.store.list_heartbeats()
        assert (await harness.store.reap(worker.worker, version=None)).was_reaped
        await harness.ended(job)
    assert b"end" in harness.collector.received
    assert await _stored(harness, job, 1) == b"first\n"
    assert await _stored(harness, job, 2) == b"second\n"


async def test_last_output_is_stored_when_the_claim_is_released(
    harness: AgentHarness, store: OutputStore
) -> None:
    command = "trap 'echo end; exit 0' TERM; echo first; sleep 1000 & wait"
    job = await harness.job(command=command, outputStreamBytes=1000)
    agent = await harness.agent(store=store)
    async with harness.working(agent) as work:
        await store.wait_for_calls()
        agent.kill()
        await work
    assert (await harness.store.get_jobs([job]))[0].state is State.QUEUED
    assert await _stored(harness, job) == b"first\nend\n"


async def test_end_is_reported_when_its_output_cannot_be_stored(
    harness: AgentHarness, store: OutputStore
) -> None:
    store.is_available = False
    job = await harness.job(command="echo all; exit 3", outputStreamBytes=1000, maxAttempts=1)
    agent = await harness.agent(
        store=store,
        config=dataclasses.replace(QUICK_CONFIG, store_timeout=timedelta(milliseconds=50)),
    )
    async with harness.working(agent):
        row = await harness.ended(job)
    assert (row.state, row.reason) == (State.FAILED, Reason.EXIT_CODE)
    line = b"\n[... of 4 bytes in all, the last 4 follow ...]\n"
    assert await harness.store.read_output(job) == line + b"all\n"


async def test_killed_agent_does_not_wait_long_for_output_to_be_stored(
    harness: AgentHarness, store: OutputStore
) -> None:
    store.is_available = False
    job = await harness.job(command="echo all", outputStreamBytes=1000)
    config = dataclasses.replace(
        QUICK_CONFIG,
        store_timeout=timedelta(days=1),
        kill_store_timeout=timedelta(milliseconds=10),
    )
    agent = await harness.agent(store=store, config=config)
    async with harness.working(agent) as work:
        await store.wait_for_calls(3)
        agent.kill()
        await work
    assert (await harness.store.get_jobs([job]))[0].state is State.SUCCEEDED


async def test_command_is_not_run_again_when_it_ended_during_an_outage(
    harness: AgentHarness, store: OutputStore, tmp_path: pathlib.Path
) -> None:
    store.is_available = False
    job = await harness.job(command=f"echo x | tee -a {tmp_path}/attempts", outputStreamBytes=1000)
    async with harness.working(await harness.agent(store=store)):
        await store.wait_for_calls(3)
        # Its lease may have expired now: running commands would be killed and released.
        harness.clock.offset_seconds += 6
        await store.wait_for_calls(1)
        store.is_available = True
        row = await harness.ended(job)
    assert (row.state, row.attempts) == (State.SUCCEEDED, 1)
    assert await harness.store.read_output(job) == b"x\n"


class FakeOutputStore:
    """Stores the chunks of one stream, or raises the errors that a test has set."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.errors: list[Exception] = []
        self.answer = ReportResult.ACCEPTED
        self.called = asyncio.Event()
        self.calls = 0

    async def append(self, number: int, data: bytes) -> ReportResult:
        self.calls += 1
        self.called.set()
        if self.errors:
            raise self.errors[0] if len(self.errors) == 1 else self.errors.pop(0)
        assert number == len(self.chunks)
        if self.answer is ReportResult.ACCEPTED:
            self.chunks.append(data)
        return self.answer

    def stream(self, limit: int = 10**6, tail: int = 100) -> OutputStream:
        return OutputStream(self.append, limit=limit, tail=tail, clock=AdjustableClock())


def _ignore(_: int) -> None:
    pass


async def test_stream_stops_when_its_claim_is_stale() -> None:
    store, acknowledged = FakeOutputStore(), list[int]()
    store.answer = ReportResult.STALE
    async with store.stream() as stream:
        stream.add(b"abc", acknowledged.append)
        await store.called.wait()
        stream.add(b"defg", acknowledged.append)
        await stream.finish(asyncio.timeout(60))
        stream.add(b"hi", acknowledged.append)
    assert store.calls == 1
    assert sum(acknowledged) == 9


async def test_captured_output_is_kept_when_the_store_rejects_a_chunk() -> None:
    store, acknowledged = FakeOutputStore(), list[int]()
    store.errors = [errors.StoreFullError("no space is left")]
    async with store.stream() as stream:
        stream.add(b"abc", acknowledged.append)
        await stream.finish(asyncio.timeout(60))
        assert stream.remaining_output(b"head and tail") == b"head and tail"
    assert sum(acknowledged) == 3


async def test_omission_line_is_added_when_a_chunk_is_rejected_after_a_lost_answer() -> None:
    store = FakeOutputStore()
    store.errors = [_UNAVAILABLE, errors.StoreFullError("no space is left")]
    async with store.stream() as stream:
        stream.add(b"abc", _ignore)
        await stream.finish(asyncio.timeout(60))
    line = b"\n[... of 3 bytes in all, the last 3 follow ...]\n"
    assert stream.remaining_output(b"abc") == line + b"abc"


async def test_finish_ends_when_its_timeout_is_shortened() -> None:
    store, acknowledged = FakeOutputStore(), list[int]()
    store.errors = [_UNAVAILABLE]
    async with store.stream() as stream:
        stream.add(b"abc", acknowledged.append)
        finishing = asyncio.create_task(stream.finish(limit := asyncio.timeout(60)))
        await store.called.wait()
        limit.reschedule(0)
        await finishing
    assert stream.remaining_output(b"").endswith(b"\nabc")
    assert sum(acknowledged) == 3


async def test_omission_line_is_added_when_the_last_chunk_is_uncertain() -> None:
    store = FakeOutputStore()
    async with store.stream(tail=4) as stream:
        stream.add(b"first", _ignore)
        await store.called.wait()
        store.errors = [_UNAVAILABLE]
        stream.add(b"second", _ignore)
        await stream.finish(asyncio.timeout(0.001))
    assert store.chunks == [b"first"]
    line = b"\n[... of 11 bytes in all, the last 4 follow ...]\n"
    assert stream.remaining_output(b"") == line + b"cond"


async def test_all_output_is_acknowledged_when_the_attempt_is_cancelled() -> None:
    store, acknowledged = FakeOutputStore(), list[int]()
    store.errors = [_UNAVAILABLE]
    async with store.stream() as stream:
        stream.add(b"x" * 10, acknowledged.append)
        await store.called.wait()
        stream.add(b"x" * 5, acknowledged.append)
    stream.add(b"x" * 3, acknowledged.append)
    assert sum(acknowledged) == 18


async def test_chunks_are_bounded_when_much_output_comes_at_once() -> None:
    store = FakeOutputStore()
    async with store.stream() as stream:
        stream.add(b"x" * 1_000_001, _ignore)
        await stream.finish(asyncio.timeout(60))
    assert {len(data) for data in store.chunks[:-1]} == {CHUNK_BYTES}
    assert sum(map(len, store.chunks)) == 1_000_000


async def test_one_chunk_of_an_agent_is_sent_at_a_time(harness: AgentHarness) -> None:
    most, now = 0, 0

    class CountingStore(OutputStore):
        async def append_output(self, *arguments: Any) -> ReportResult:
            nonlocal most, now
            now += 1
            most = max(most, now)
            try:
                await asyncio.sleep(0)
                return await super().append_output(*arguments)
            finally:
                now -= 1

    runs = [
        await harness.job(
            f"job-{number}", command="head -c 600000 /dev/zero", outputStreamBytes=10**6
        )
        for number in range(8)
    ]
    async with harness.working(await harness.agent(store=CountingStore(harness.store))):
        for run in runs:
            await harness.ended(run)
    assert most == 1


def test_number_of_chunks_stays_below_the_limit_when_a_command_writes_slowly() -> None:
    age, count = 0.0, 0
    while age < 50 * 365 * 24 * 3600:
        age += output_stream.pause_seconds(age)
        count += 1
    assert count + payloads.MAX_STREAM_BYTES // CHUNK_BYTES < payloads.MAX_CHUNKS

"""Output that is stored while its command runs: exact, in order, and never after the claim."""

import asyncio
import dataclasses
import os
import pathlib
import random
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.shop import QUICK, RealClock, Shop
from workron.core import errors, payloads
from workron.core.ids import JobId
from workron.core.states import Reason, State
from workron.store.api import Store
from workron.store.types import OutputChunk, ReportResult
from workron_worker import agent as loop
from workron_worker import output_stream
from workron_worker.executor import WINDOW_BYTES
from workron_worker.output_stream import CHUNK_BYTES, OutputStream

_AWAY = errors.StoreUnreachableError("the store is away")


class Door:
    """Stands before a store, and may be shut for output alone; tells when it is knocked at."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_open = True
        self.loses_answers = 0
        self.calls: list[int] = []
        self._knock = asyncio.Event()

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._store, verb)

    async def append_output(self, key: Any, right: Any, chunk: int, data: bytes) -> ReportResult:
        self.calls.append(chunk)
        try:
            if not self.is_open:
                raise _AWAY
            answer = await self._store.append_output(key, right, chunk, data)
        finally:
            self._knock.set()
        if self.loses_answers:
            self.loses_answers -= 1
            raise errors.StoreUnreachableError("the answer was lost")
        return answer

    async def knocked(self, times: int = 1) -> None:
        """Wait until it was knocked at so many times more."""
        wanted = len(self.calls) + times
        while len(self.calls) < wanted:
            self._knock.clear()
            await self._knock.wait()


@pytest.fixture
def door(shop: Shop) -> Door:
    return Door(shop.store)


def _odd(tmp_path: pathlib.Path, size: int) -> tuple[pathlib.Path, bytes]:
    """Make a file of bytes that are no text, with NUL among them and no line feed at the end."""
    data = random.Random(size).randbytes(size - 2) + b"\0\xff"
    path = tmp_path / "odd"
    path.write_bytes(data)
    return path, data


async def _stored(shop: Shop, job: JobId, attempt: int = 1) -> bytes:
    return b"".join(piece.data for piece in await shop.store.read_output_chunks(job, attempt))


@pytest.mark.parametrize("size", [2, 1000, CHUNK_BYTES, 3_000_001])
async def test_stream_is_stored_byte_by_byte(shop: Shop, tmp_path: pathlib.Path, size: int) -> None:
    path, data = _odd(tmp_path, size)
    job = await shop.job(command=f"cat {path}", outputStreamBytes=size, outputLimitBytes=10)
    async with shop.working(await shop.agent()):
        assert (await shop.ended(job)).state is State.SUCCEEDED
    assert await shop.store.read_output(job) == data
    assert (await shop.store.read_output_chunks(job, 1))[-1].chunk < payloads.MAX_CHUNKS


async def test_stream_can_be_read_while_its_command_runs(
    shop: Shop, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    command = f"printf first; cat {tmp_path}/go"
    job = await shop.job(command=command, outputStreamBytes=1000, outputLimitBytes=0)
    door = Door(shop.store)
    async with shop.working(await shop.agent(door=door)):
        await door.knocked()
        assert await shop.store.read_output(job) == b"first"
        assert (await shop.store.get_jobs([job]))[0].state is State.RUNNING
        await asyncio.to_thread((tmp_path / "go").write_text, " second")
        await shop.ended(job)
    assert await shop.store.read_output(job) == b"first second"


async def test_stream_that_is_cut_ends_with_a_line_and_the_tail(
    shop: Shop, tmp_path: pathlib.Path
) -> None:
    path, data = _odd(tmp_path, 1_000_000)
    job = await shop.job(command=f"cat {path}", outputStreamBytes=400_000, outputLimitBytes=100)
    async with shop.working(await shop.agent()):
        await shop.ended(job)
    line = b"\n[... of 1000000 bytes in all, the last 100 follow ...]\n"
    assert await shop.store.read_output(job) == data[:400_000] + line + data[-100:]


async def test_stream_whose_rest_fits_into_the_tail_is_whole(
    shop: Shop, tmp_path: pathlib.Path
) -> None:
    path, data = _odd(tmp_path, 1100)
    job = await shop.job(command=f"cat {path}", outputStreamBytes=1000, outputLimitBytes=100)
    async with shop.working(await shop.agent()):
        await shop.ended(job)
    assert await shop.store.read_output(job) == data


@pytest.mark.parametrize("tail", [0, 1024 * 1024])
async def test_cut_is_told_of_however_small_or_large_the_tail_is(shop: Shop, tail: int) -> None:
    command = "head -c 3000000 /dev/zero"
    job = await shop.job(command=command, outputStreamBytes=10, outputLimitBytes=tail)
    async with shop.working(await shop.agent()):
        assert (await shop.ended(job)).state is State.SUCCEEDED
    shown = await shop.store.read_output(job)
    assert shown.startswith(b"\0" * 10 + b"\n[... of 3000000 bytes in all, the last ")
    assert tail - 200 < len(shown) <= tail + 100


async def test_each_attempt_has_its_own_stream(shop: Shop) -> None:
    command = 'echo "this is $WORKRON_ATTEMPT"; test $WORKRON_ATTEMPT = 2'
    job = await shop.job(command=command, outputStreamBytes=1000, backoff={"initial": "1ms"})
    async with shop.working(await shop.agent()):
        await shop.ended(job)
    assert await shop.store.read_output_chunks(job, 1) == [OutputChunk(0, b"this is 1\n")]
    assert await shop.store.read_output_chunks(job, 2) == [OutputChunk(0, b"this is 2\n")]
    assert await shop.store.read_output(job) == b"this is 2\n"


async def test_others_hear_what_is_streamed_as_well(shop: Shop, tmp_path: pathlib.Path) -> None:
    path, data = _odd(tmp_path, 1_000_000)
    job = await shop.job(command=f"cat {path}", outputStreamBytes=10, outputLimitBytes=10)
    async with shop.working(await shop.agent()):
        await shop.ended(job)
    assert shop.ear.heard == data


async def test_piece_whose_answer_was_lost_is_stored_once(
    shop: Shop, door: Door, tmp_path: pathlib.Path
) -> None:
    path, data = _odd(tmp_path, 1_000_000)
    door.loses_answers = 2
    job = await shop.job(command=f"cat {path}", outputStreamBytes=1_000_000, outputLimitBytes=0)
    async with shop.working(await shop.agent(door=door)):
        await shop.ended(job)
    assert door.calls[:2] == [0, 0]
    assert await shop.store.read_output(job) == data


async def test_command_waits_for_a_store_that_is_away_and_nothing_is_lost(
    shop: Shop, tmp_path: pathlib.Path
) -> None:
    path, data = _odd(tmp_path, 3_000_000)
    job = await shop.job(
        command=f"cat {path}; touch {tmp_path}/done",
        outputStreamBytes=3_000_000,
        outputLimitBytes=0,
    )
    door = Door(shop.store)
    door.is_open = False
    async with shop.working(await shop.agent(door=door)):
        await door.knocked(4)
        assert not (tmp_path / "done").exists()
        door.is_open = True
        await shop.ended(job)
    assert (tmp_path / "done").exists()
    assert await shop.store.read_output(job) == data


async def test_command_does_not_wait_for_a_store_that_is_away_once_its_limit_is_reached(
    shop: Shop, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "done")
    command = f"head -c 3000000 /dev/zero; echo done > {tmp_path}/done; echo end"
    job = await shop.job(command=command, outputStreamBytes=WINDOW_BYTES, outputLimitBytes=4)
    door = Door(shop.store)
    door.is_open = False
    async with shop.working(await shop.agent(door=door)):
        assert await asyncio.to_thread((tmp_path / "done").read_text) == "done\n"
        assert await shop.store.read_output(job) == b""
        door.is_open = True
        await shop.ended(job)
    shown = await shop.store.read_output(job)
    assert shown.startswith(b"\0" * WINDOW_BYTES + b"\n[... of 3000004 bytes in all")
    assert shown.endswith(b"]\nend\n")


async def test_command_that_does_not_stream_never_waits(shop: Shop) -> None:
    job = await shop.job(command="head -c 3000000 /dev/zero; echo end", outputLimitBytes=4)
    door = Door(shop.store)
    door.is_open = False
    async with shop.working(await shop.agent(door=door)):
        await shop.ended(job)
    assert door.calls == []
    assert await shop.store.read_output(job) == b"end\n"


async def test_nothing_is_stored_once_the_claim_was_taken_back(shop: Shop, door: Door) -> None:
    command = """
    if [ "$WORKRON_ATTEMPT" = 2 ]; then echo second; exit 0; fi
    trap 'echo bye; exit 0' TERM
    echo first
    sleep 1000 & wait
    """
    job = await shop.job(command=command, outputStreamBytes=1000)
    async with shop.working(await shop.agent(door=door)):
        await door.knocked()
        [worker] = await shop.store.list_heartbeats()
        assert (await shop.store.reap(worker.worker, version=None)).was_reaped
        await shop.ended(job)
    assert b"bye" in shop.ear.heard
    assert await _stored(shop, job, 1) == b"first\n"
    assert await _stored(shop, job, 2) == b"second\n"


async def test_last_words_of_a_command_that_is_handed_back_are_kept(shop: Shop, door: Door) -> None:
    command = "trap 'echo bye; exit 0' TERM; echo first; sleep 1000 & wait"
    job = await shop.job(command=command, outputStreamBytes=1000)
    agent = await shop.agent(door=door)
    async with shop.working(agent) as work:
        await door.knocked()
        agent.kill()
        await work
    assert (await shop.store.get_jobs([job]))[0].state is State.QUEUED
    assert await _stored(shop, job) == b"first\nbye\n"


async def test_end_is_reported_although_its_output_cannot_be_stored(shop: Shop, door: Door) -> None:
    door.is_open = False
    job = await shop.job(command="echo all; exit 3", outputStreamBytes=1000, maxAttempts=1)
    agent = await shop.agent(
        door=door, config=dataclasses.replace(QUICK, store_timeout=timedelta(milliseconds=50))
    )
    async with shop.working(agent):
        row = await shop.ended(job)
    assert (row.state, row.reason) == (State.FAILED, Reason.EXIT_CODE)
    assert (
        await shop.store.read_output(job)
        == b"\n[... of 4 bytes in all, the last 4 follow ...]\nall\n"
    )


async def test_killed_agent_does_not_wait_long_for_output_to_be_stored(
    shop: Shop, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_KILL_STORE_TIMEOUT", timedelta(milliseconds=10))
    door.is_open = False
    job = await shop.job(command="echo all", outputStreamBytes=1000)
    config = dataclasses.replace(QUICK, store_timeout=timedelta(days=1))
    agent = await shop.agent(door=door, config=config)
    async with shop.working(agent) as work:
        await door.knocked(3)
        agent.kill()
        await work
    assert (await shop.store.get_jobs([job]))[0].state is State.SUCCEEDED


async def test_command_that_ended_while_the_store_was_away_is_not_run_again(
    shop: Shop, door: Door, tmp_path: pathlib.Path
) -> None:
    door.is_open = False
    job = await shop.job(command=f"echo x | tee -a {tmp_path}/ledger", outputStreamBytes=1000)
    async with shop.working(await shop.agent(door=door)):
        await door.knocked(3)
        # Its lease may be over now: what runs would be ended and handed back.
        shop.clock.turned += 6
        await door.knocked(1)
        door.is_open = True
        row = await shop.ended(job)
    assert (row.state, row.attempts) == (State.SUCCEEDED, 1)
    assert await shop.store.read_output(job) == b"x\n"


class Shelf:
    """Takes pieces, or raises what it is told to."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.errors: list[Exception] = []
        self.answer = ReportResult.ACCEPTED
        self.tried = asyncio.Event()
        self.calls = 0

    async def append(self, number: int, data: bytes) -> ReportResult:
        self.calls += 1
        self.tried.set()
        if self.errors:
            raise self.errors[0] if len(self.errors) == 1 else self.errors.pop(0)
        assert number == len(self.pieces)
        if self.answer is ReportResult.ACCEPTED:
            self.pieces.append(data)
        return self.answer

    def stream(self, limit: int = 10**6, tail: int = 100) -> OutputStream:
        return OutputStream(self.append, limit=limit, tail=tail, clock=RealClock())


def _deaf(_: int) -> None:
    pass


async def test_stale_claim_stops_its_stream_for_good() -> None:
    shelf, dealt_with = Shelf(), list[int]()
    shelf.answer = ReportResult.STALE
    async with shelf.stream() as one:
        one.add(b"abc", dealt_with.append)
        await shelf.tried.wait()
        one.add(b"defg", dealt_with.append)
        await one.finish(asyncio.timeout(60))
        one.add(b"hi", dealt_with.append)
    assert shelf.calls == 1
    assert sum(dealt_with) == 9


async def test_store_that_refuses_a_piece_is_not_asked_again_and_all_is_kept_otherwise() -> None:
    shelf, dealt_with = Shelf(), list[int]()
    shelf.errors = [errors.StoreFullError("no space is left")]
    async with shelf.stream() as one:
        one.add(b"abc", dealt_with.append)
        await one.finish(asyncio.timeout(60))
        assert one.remaining_output(b"head and tail") == b"head and tail"
    assert sum(dealt_with) == 3


async def test_end_waits_no_longer_than_the_agent_does() -> None:
    shelf, dealt_with = Shelf(), list[int]()
    shelf.errors = [_AWAY]
    async with shelf.stream() as one:
        one.add(b"abc", dealt_with.append)
        finishing = asyncio.create_task(one.finish(limit := asyncio.timeout(60)))
        await shelf.tried.wait()
        limit.reschedule(0)
        await finishing
    assert one.remaining_output(b"").endswith(b"\nabc")
    assert sum(dealt_with) == 3


async def test_piece_of_which_nobody_knows_if_it_is_stored_is_never_passed_over() -> None:
    shelf = Shelf()
    async with shelf.stream(tail=4) as one:
        one.add(b"first", _deaf)
        await shelf.tried.wait()
        shelf.errors = [_AWAY]
        one.add(b"second", _deaf)
        await one.finish(asyncio.timeout(0.001))
    assert shelf.pieces == [b"first"]
    assert one.remaining_output(b"") == b"\n[... of 11 bytes in all, the last 4 follow ...]\ncond"


async def test_what_waits_is_let_go_when_the_attempt_is_given_up() -> None:
    shelf, dealt_with = Shelf(), list[int]()
    shelf.errors = [_AWAY]
    async with shelf.stream() as one:
        one.add(b"x" * 10, dealt_with.append)
        await shelf.tried.wait()
        one.add(b"x" * 5, dealt_with.append)
    one.add(b"x" * 3, dealt_with.append)
    assert sum(dealt_with) == 18


async def test_pieces_are_bounded_however_much_is_heard_at_once() -> None:
    shelf = Shelf()
    async with shelf.stream() as one:
        one.add(b"x" * 1_000_001, _deaf)
        await one.finish(asyncio.timeout(60))
    assert {len(data) for data in shelf.pieces[:-1]} == {CHUNK_BYTES}
    assert sum(map(len, shelf.pieces)) == 1_000_000


async def test_one_piece_of_an_agent_is_under_way_at_a_time(shop: Shop) -> None:
    most, now = 0, 0

    class Busy(Door):
        async def append_output(self, *given: Any) -> ReportResult:
            nonlocal most, now
            now += 1
            most = max(most, now)
            try:
                await asyncio.sleep(0)
                return await super().append_output(*given)
            finally:
                now -= 1

    roots = [
        await shop.job(f"job-{number}", command="head -c 600000 /dev/zero", outputStreamBytes=10**6)
        for number in range(8)
    ]
    async with shop.working(await shop.agent(door=Busy(shop.store))):
        for root in roots:
            await shop.ended(root)
    assert most == 1


def test_slowest_writer_never_comes_to_more_pieces_than_an_attempt_may_have() -> None:
    age, count = 0.0, 0
    while age < 50 * 365 * 24 * 3600:
        age += output_stream.pause_seconds(age)
        count += 1
    assert count + payloads.MAX_STREAM_BYTES // CHUNK_BYTES < payloads.MAX_CHUNKS

"""WriterThread: waiting requests share a transaction and fail separately."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.store.behaviour.databases import FakeClock
from tests.store.sqlite import opening
from workron.core import errors
from workron.store.sqlite.engine import Transaction, WriterThread

Work = Callable[[Transaction], Any]


class ThreadHarness:
    """A writer thread, the statements that it ran, and a gate that makes requests wait."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.thread = WriterThread(
            self._open, begin="BEGIN IMMEDIATE", place=":memory:", clock=FakeClock()
        )

    def _open(self) -> sqlite3.Connection:
        opened = opening.open_bare()
        opened.set_trace_callback(self.statements.append)
        return opened

    @contextlib.asynccontextmanager
    async def blocked(self) -> AsyncIterator[None]:
        """Keep the thread busy, so that the requests made meanwhile wait together."""
        is_busy, gate = threading.Event(), threading.Event()

        def block(_: Transaction) -> None:
            is_busy.set()
            gate.wait()

        blocking = asyncio.ensure_future(self.thread.run(block))
        await asyncio.to_thread(is_busy.wait)
        yield
        self.statements.clear()
        gate.set()
        await blocking

    async def run_together(self, *works: Work) -> list[Any]:
        async with self.blocked():
            waiting = [asyncio.ensure_future(self.thread.run(work)) for work in works]
            await asyncio.sleep(0)
        return await asyncio.gather(*waiting, return_exceptions=True)

    async def pools(self) -> set[str]:
        return set(await self.thread.run(_names))


def _names(tx: Transaction) -> list[str]:
    return [row["name"] for row in tx._connection.execute("SELECT name FROM pool")]


@pytest.fixture
async def harness() -> AsyncIterator[ThreadHarness]:
    made = ThreadHarness()
    await made.thread.open()
    yield made
    await made.thread.close()


def _add(name: str) -> Work:
    return lambda tx: tx.run("ensure_pool.insert_pool", namespace="space", name=name)


def _fail(tx: Transaction) -> None:
    _add("bad")(tx)
    tx._connection.execute("INSERT INTO pool (namespace, name) VALUES ('space', NULL)")


def _lose_transaction(tx: Transaction) -> None:
    tx._connection.execute("ROLLBACK")
    raise sqlite3.OperationalError("the disk is gone")


async def test_requests_share_a_commit_when_they_wait_together(harness: ThreadHarness) -> None:
    await harness.run_together(*(_add(f"pool{i}") for i in range(20)))
    # The first is that of the request that blocked the thread.
    assert harness.statements.count("COMMIT") == 2
    assert len(await harness.pools()) == 20


async def test_other_requests_succeed_when_one_fails(harness: ThreadHarness) -> None:
    one, bad, two = await harness.run_together(_add("one"), _fail, _add("two"))
    assert (one, two) == (1, 1)
    assert isinstance(bad, errors.StoreDataError)
    assert await harness.pools() == {"one", "two"}


async def test_other_requests_run_again_when_the_transaction_is_lost(
    harness: ThreadHarness,
) -> None:
    one, bad, two = await harness.run_together(_add("one"), _lose_transaction, _add("two"))
    assert (one, two) == (1, 1)
    assert isinstance(bad, errors.StoreError)
    assert await harness.pools() == {"one", "two"}


async def test_other_errors_are_raised_unchanged(harness: ThreadHarness) -> None:
    def fail(tx: Transaction) -> None:
        _add("bad")(tx)
        raise KeyError("failed")

    (error,) = await harness.run_together(fail)
    assert isinstance(error, KeyError)
    assert await harness.pools() == set()


async def test_request_does_not_run_when_its_caller_was_cancelled(harness: ThreadHarness) -> None:
    async with harness.blocked():
        cancelled = asyncio.ensure_future(harness.thread.run(_add("cancelled")))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
    assert await harness.pools() == set()


async def test_pending_requests_run_when_the_thread_is_closed(harness: ThreadHarness) -> None:
    waiting = asyncio.ensure_future(harness.thread.run(_add("last")))
    await asyncio.sleep(0)
    await harness.thread.close()
    assert await waiting == 1


async def test_error_says_that_the_store_is_closed(harness: ThreadHarness) -> None:
    await harness.thread.close()
    with pytest.raises(errors.StoreUnreachableError, match="closed"):
        await harness.thread.run(_add("late"))


async def test_connection_is_closed_when_open_is_cancelled() -> None:
    gate, opened = threading.Event(), []

    def open_slowly() -> sqlite3.Connection:
        gate.wait()
        opened.append(opening.open_bare())
        return opened[0]

    thread = WriterThread(open_slowly, begin="BEGIN", place=":memory:", clock=FakeClock())
    opening_task = asyncio.ensure_future(thread.open())
    await asyncio.sleep(0)
    opening_task.cancel()
    gate.set()
    await asyncio.wait([opening_task])
    assert opening_task.cancelled()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].total_changes  # noqa: B018


async def test_open_raises_the_error_of_the_opener() -> None:
    def fail() -> sqlite3.Connection:
        raise errors.SchemaError("not this one")

    thread = WriterThread(fail, begin="BEGIN", place="here", clock=FakeClock())
    with pytest.raises(errors.SchemaError, match="not this one"):
        await thread.open()

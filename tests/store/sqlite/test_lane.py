"""The lane: what waits shares a transaction, and nobody fails for another."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.store.behaviour.grounds import HandClock
from tests.store.sqlite import opening
from workron.core import errors
from workron.store.sqlite.engine import Transaction, WriterThread

Work = Callable[[Transaction], Any]


class Shelf:
    """A lane, what its connection was told, and a gate to pile requests up behind."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.lane = WriterThread(
            self._open, begin="BEGIN IMMEDIATE", place=":memory:", clock=HandClock()
        )

    def _open(self) -> sqlite3.Connection:
        opened = opening.open_bare()
        opened.set_trace_callback(self.said.append)
        return opened

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Keep the thread busy, so that all that is asked meanwhile waits together."""
        is_busy, gate = threading.Event(), threading.Event()

        def block(_: Transaction) -> None:
            is_busy.set()
            gate.wait()

        blocked = asyncio.ensure_future(self.lane.run(block))
        await asyncio.to_thread(is_busy.wait)
        yield
        self.said.clear()
        gate.set()
        await blocked

    async def run_together(self, *works: Work) -> list[Any]:
        async with self.held():
            waiting = [asyncio.ensure_future(self.lane.run(work)) for work in works]
            await asyncio.sleep(0)
        return await asyncio.gather(*waiting, return_exceptions=True)

    async def pools(self) -> set[str]:
        return set(await self.lane.run(_names))


def _names(tx: Transaction) -> list[str]:
    return [row["name"] for row in tx._connection.execute("SELECT name FROM pool")]


@pytest.fixture
async def shelf() -> AsyncIterator[Shelf]:
    made = Shelf()
    await made.lane.open()
    yield made
    await made.lane.close()


def _add(name: str) -> Work:
    return lambda tx: tx.run("ensure_pool.insert_pool", namespace="space", name=name)


def _fail(tx: Transaction) -> None:
    _add("bad")(tx)
    tx._connection.execute("INSERT INTO pool (namespace, name) VALUES ('space', NULL)")


def _lose_all(tx: Transaction) -> None:
    tx._connection.execute("ROLLBACK")
    raise sqlite3.OperationalError("the disk is gone")


async def test_requests_share_a_commit_when_they_wait_together(shelf: Shelf) -> None:
    await shelf.run_together(*(_add(f"pool{i}") for i in range(20)))
    # The first is that of the request behind which they waited.
    assert shelf.said.count("COMMIT") == 2
    assert len(await shelf.pools()) == 20


async def test_neighbours_are_kept_when_a_request_fails(shelf: Shelf) -> None:
    one, bad, two = await shelf.run_together(_add("one"), _fail, _add("two"))
    assert (one, two) == (1, 1)
    assert isinstance(bad, errors.StoreDataError)
    assert await shelf.pools() == {"one", "two"}


async def test_neighbours_are_served_again_when_the_transaction_is_lost(shelf: Shelf) -> None:
    one, bad, two = await shelf.run_together(_add("one"), _lose_all, _add("two"))
    assert (one, two) == (1, 1)
    assert isinstance(bad, errors.StoreError)
    assert await shelf.pools() == {"one", "two"}


async def test_error_that_is_not_the_databases_comes_out_as_it_is(shelf: Shelf) -> None:
    def stumble(tx: Transaction) -> None:
        _add("bad")(tx)
        raise KeyError("stumble")

    (error,) = await shelf.run_together(stumble)
    assert isinstance(error, KeyError)
    assert await shelf.pools() == set()


async def test_request_is_not_begun_when_its_caller_has_gone(shelf: Shelf) -> None:
    async with shelf.held():
        gone = asyncio.ensure_future(shelf.lane.run(_add("gone")))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
    assert await shelf.pools() == set()


async def test_what_waits_is_served_when_the_lane_closes(shelf: Shelf) -> None:
    waiting = asyncio.ensure_future(shelf.lane.run(_add("last")))
    await asyncio.sleep(0)
    await shelf.lane.close()
    assert await waiting == 1


async def test_closed_lane_says_so(shelf: Shelf) -> None:
    await shelf.lane.close()
    with pytest.raises(errors.StoreUnreachableError, match="closed"):
        await shelf.lane.run(_add("late"))


async def test_lane_whose_opening_is_given_up_is_closed() -> None:
    gate, opened = threading.Event(), []

    def open_slowly() -> sqlite3.Connection:
        gate.wait()
        opened.append(opening.open_bare())
        return opened[0]

    lane = WriterThread(open_slowly, begin="BEGIN", place=":memory:", clock=HandClock())
    given_up = asyncio.ensure_future(lane.open())
    await asyncio.sleep(0)
    given_up.cancel()
    gate.set()
    await asyncio.wait([given_up])
    assert given_up.cancelled()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].total_changes  # noqa: B018


async def test_error_of_opening_comes_out_of_open() -> None:
    def refuse() -> sqlite3.Connection:
        raise errors.SchemaError("not this one")

    lane = WriterThread(refuse, begin="BEGIN", place="here", clock=HandClock())
    with pytest.raises(errors.SchemaError, match="not this one"):
        await lane.open()

"""Running requests on a thread that owns a connection, many in one transaction.

Everything that waits when a transaction begins is part of it. Each request has a savepoint, so that
a failure does not affect the others, and is answered only after the commit. A store has one thread
that writes, and for a file a second one that reads.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from uuid import UUID

from workron.core import errors
from workron.store import api
from workron.store.sqlite import driver_errors
from workron.store.sqlite.connection import execute_when_free, statement_text, statements_in
from workron.store.wakeup import Wakeup

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from workron.core.clock import Clock, Rng
    from workron.core.ids import SessionKey


class Transaction:
    """Runs statements by name. All have the parameter `:now`, one time for the whole request."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self._connection = connection
        self.now = now

    def run(self, statement: str, /, **values: Any) -> int:
        """Run a statement and return the number of rows that it changed."""
        return self._execute(statement, values).rowcount

    def rows(self, statement: str, /, **values: Any) -> list[Any]:
        """Read all rows."""
        return self._execute(statement, values).fetchall()

    def row(self, statement: str, /, **values: Any) -> Any:
        """Read the first row, or None."""
        return self._execute(statement, values).fetchone()

    def fill(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        self._connection.executemany(statement_text(statement), rows)

    def clear(self) -> None:
        """Empty the temporary tables."""
        for statement in statements_in("clear_scratch").values():
            self._connection.execute(statement)

    def _execute(self, statement: str, values: dict[str, Any]) -> sqlite3.Cursor:
        return self._connection.execute(statement_text(statement), values | {"now": self.now})


def json_list(values: Iterable[Any]) -> str:
    """Encode a list for `json_each`; UUIDs become text."""
    return json.dumps(list(values), default=str)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_micros(time: datetime) -> int:
    """Return microseconds since 1970; exact, unlike a float."""
    return (time - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the time of a column."""
    return _EPOCH + micros * _MICROSECOND


def seconds_to_micros(seconds: float) -> int:
    """Return microseconds. OverflowError or ValueError if the number is not finite."""
    return round(seconds * 1_000_000)


_T = TypeVar("_T")

_AFTER_WRITES: Final = frozenset({"list_heartbeats"})
"""Queries that run on the thread that writes, after pending heartbeats."""


class SqliteDatabase(api.Database):
    """Base of all interfaces. For a database in memory, the thread that writes also reads."""

    # SQLite has neither times nor booleans nor UUIDs.
    decoders = MappingProxyType(
        dict(api.DECODERS)
        | dict.fromkeys(("submitted_at", "due", "started_at", "finished_at"), from_micros)
        | dict.fromkeys(("has_ended", "is_draining", "is_cancelled"), bool)
        | {"uid": UUID}
    )

    def __init__(
        self, url: str, *, writer: WriterThread, reader: WriterThread, clock: Clock, rng: Rng
    ) -> None:
        self.url = url
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._rng = rng
        self._wakeup = Wakeup()

    async def _write(self, work: Callable[[Transaction], _T]) -> _T:
        return await self._writer.run(work)

    async def _write_and_wake(
        self, work: Callable[[Transaction], _T], *, worker: SessionKey | None = None
    ) -> _T:
        """Write something that may end a job or make one ready, then wake waiting tasks."""
        result = await self._writer.run(work)
        if result:
            self._wakeup.wake(worker)
        return result

    async def _rows(
        self, statement: str, convert: Callable[[Any], _T], /, **values: Any
    ) -> list[_T]:
        for name, value in values.items():
            if isinstance(value, list):
                values[name] = json_list(value)
        thread = self._writer if statement in _AFTER_WRITES else self._reader
        # Converted on the thread: 100,000 rows must not block the event loop.
        return await thread.run(lambda tx: [convert(row) for row in tx.rows(statement, **values)])

    async def _change(self, statement: str, /, **values: Any) -> int:
        return await self._write(lambda tx: tx.run(statement, **values))

    async def wait_for_work(self, timeout_seconds: float, worker: SessionKey | None = None) -> None:
        """Implement `api.WorkerStore`; changes by other processes are found by polling."""
        await self._wakeup.wait(timeout_seconds, worker)

    async def close(self) -> None:
        """Finish pending requests, then close the connections."""
        await self._reader.close()
        await self._writer.close()


_MOST_REQUESTS: Final = 256
"""In one transaction, so that the first of them is answered in time."""


@dataclass(frozen=True, slots=True)
class _Request(Generic[_T]):
    work: Callable[[Transaction], _T]
    answer: Future[_T] = field(default_factory=Future)


class WriterThread:
    """Runs requests of the event loop in order, on a thread of its own."""

    def __init__(
        self, opener: Callable[[], sqlite3.Connection], *, begin: str, place: str, clock: Clock
    ) -> None:
        self._opener = opener
        self._begin = begin
        self._place = place
        self._clock = clock
        self._requests: queue.SimpleQueue[_Request[Any] | None] = queue.SimpleQueue()
        self._opened: Future[None] = Future()
        # A daemon: a program that does not close its store can still exit.
        self._thread = threading.Thread(
            target=self._run_requests, name=f"{begin} {place}", daemon=True
        )
        self._is_closed = False

    async def open(self) -> None:
        """Start the thread and open the connection."""
        self._thread.start()
        try:
            # The thread sets the result in any case, so the future must not be cancelled.
            await asyncio.shield(asyncio.wrap_future(self._opened))
        except asyncio.CancelledError:
            await self.close()
            raise

    async def run(self, work: Callable[[Transaction], _T]) -> _T:
        """Run `work` on the thread, and return its result after the commit."""
        if self._is_closed:
            raise errors.StoreUnreachableError(f"{self._place}: this store is closed")
        request = _Request(work)
        self._requests.put(request)
        return await asyncio.wrap_future(request.answer)

    async def close(self) -> None:
        """Finish pending requests, then close the connection."""
        if not self._is_closed:
            self._is_closed = True
            self._requests.put(None)
            await asyncio.to_thread(self._thread.join)

    def _run_requests(self) -> None:
        try:
            connection = self._opener()
        except Exception as cause:  # noqa: BLE001  the caller of `open` gets it
            self._opened.set_exception(driver_errors.translate(cause, self._place))
            return
        self._opened.set_result(None)
        is_open = True
        while is_open:
            waiting = self._collect()
            is_open = None not in waiting
            self._run_together(
                connection,
                [one for one in waiting if one and one.answer.set_running_or_notify_cancel()],
            )
        connection.close()

    def _collect(self) -> list[_Request[Any] | None]:
        found = [self._requests.get()]
        while found[-1] is not None and len(found) < _MOST_REQUESTS:
            try:
                found.append(self._requests.get_nowait())
            except queue.Empty:
                break
        return found

    def _run_together(
        self, connection: sqlite3.Connection, requests: Sequence[_Request[Any]]
    ) -> None:
        """Run requests in one transaction, and each in its own if that fails."""
        if not requests:
            return
        try:
            execute_when_free(connection, self._begin)
        except Exception as cause:  # noqa: BLE001  the thread must survive it
            self._refuse(requests, cause)
            return
        try:
            answers = [self._run_one(connection, request) for request in requests]
            connection.execute("COMMIT")
        except Exception as cause:  # noqa: BLE001  (the same)
            connection.rollback()
            if len(requests) == 1:
                self._refuse(requests, cause)
            else:
                for request in requests:
                    self._run_together(connection, [request])
            return
        for answer in answers:
            answer()

    def _run_one(
        self, connection: sqlite3.Connection, request: _Request[Any]
    ) -> Callable[[], None]:
        """Run one request; return a function that answers it after the commit."""
        connection.execute("SAVEPOINT request")
        now = to_micros(self._clock.now())
        try:
            result = request.work(Transaction(connection, now))
        except Exception as cause:
            # A full disk has rolled back the whole transaction, with the other requests.
            if not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO request")
            connection.execute("RELEASE request")
            error = driver_errors.translate(cause, self._place)
            return lambda: request.answer.set_exception(error)
        connection.execute("RELEASE request")
        return lambda: request.answer.set_result(result)

    def _refuse(self, requests: Sequence[_Request[Any]], cause: Exception) -> None:
        for request in requests:
            request.answer.set_exception(driver_errors.translate(cause, self._place))

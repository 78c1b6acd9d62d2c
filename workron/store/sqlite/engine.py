"""One thread that owns one connection, and carries out whatever waits in one transaction.

Each request has a savepoint, so that one that fails does not fail its neighbours, and is answered
only after the commit. Made by `store`: one lane to write, and for a file one to read.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from workron.core import errors
from workron.store.sqlite import connection, driver_errors
from workron.store.sqlite import connection as opening
from workron.store.wakeup import Wakeup

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from workron.core.clock import Clock, Rng
    from workron.core.ids import SessionKey


class Transaction:
    """Statements by name. Each has `:now`, one time for the whole verb."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self._connection = connection
        self.now = now

    def run(self, statement: str, /, **values: Any) -> int:
        """Run a statement and count the rows that it changed."""
        return self._execute(statement, values).rowcount

    def rows(self, statement: str, /, **values: Any) -> list[Any]:
        """Read all rows."""
        return self._execute(statement, values).fetchall()

    def row(self, statement: str, /, **values: Any) -> Any:
        """Read the first row, or None."""
        return self._execute(statement, values).fetchone()

    def fill(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        self._connection.executemany(connection.statement_text(statement), rows)

    def clear(self) -> None:
        """Empty the scratch sets."""
        for statement in connection.statements_in("clear").values():
            self._connection.execute(statement)

    def _execute(self, statement: str, values: dict[str, Any]) -> sqlite3.Cursor:
        return self._connection.execute(
            connection.statement_text(statement), values | {"now": self.now}
        )


def listed(values: Iterable[Any]) -> str:
    """Word a list for `json_each`; UUIDs become text."""
    return json.dumps(list(values), default=str)


_T = TypeVar("_T")


class SqliteVerbs:
    """One database; for one in memory, the lane that writes also reads."""

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

    async def _stir(
        self, work: Callable[[Transaction], _T], *, doer: SessionKey | None = None
    ) -> _T:
        """Write what may make something ready or end it, then wake who waits for that."""
        result = await self._writer.run(work)
        if result:
            self._wakeup.wake(doer)
        return result

    async def _read(self, work: Callable[[Transaction], _T]) -> _T:
        return await self._reader.run(work)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_micros(time: datetime) -> int:
    """Count from 1970 to an aware time; exact, as a float would not be."""
    return delta_to_micros(time - _EPOCH)


def delta_to_micros(delta: timedelta) -> int:
    """Count a duration."""
    return delta // _MICROSECOND


def seconds_to_micros(seconds: float) -> int:
    """Count a duration. OverflowError or ValueError when it is not finite."""
    return round(seconds * 1_000_000)


@overload
def from_micros(micros: int) -> datetime: ...
@overload
def from_micros(micros: None) -> None: ...
def from_micros(micros: int | None) -> datetime | None:
    """Give the time of a column; null stays None."""
    return None if micros is None else _EPOCH + micros * _MICROSECOND


_MOST_REQUESTS: Final = 256
"""In one transaction, so that the first of them does not wait for ever."""


@dataclass(frozen=True, slots=True)
class _Request(Generic[_T]):
    work: Callable[[Transaction], _T]
    answer: Future[_T] = field(default_factory=Future)


class WriterThread:
    """Requests go in from the event loop; a thread works them off in order."""

    def __init__(
        self, opener: Callable[[], sqlite3.Connection], *, begin: str, place: str, clock: Clock
    ) -> None:
        self._opener = opener
        self._begin = begin
        self._place = place
        self._clock = clock
        self._requests: queue.SimpleQueue[_Request[Any] | None] = queue.SimpleQueue()
        self._opened: Future[None] = Future()
        # A program that forgets to close a store must still be able to end.
        self._thread = threading.Thread(target=self._serve, name=f"{begin} {place}", daemon=True)
        self._is_closed = False

    async def open(self) -> None:
        """Open the connection; raises what that raised."""
        self._thread.start()
        try:
            # The thread answers in any case, and must find somebody to tell.
            await asyncio.shield(asyncio.wrap_future(self._opened))
        except asyncio.CancelledError:
            await self.close()
            raise

    async def run(self, work: Callable[[Transaction], _T]) -> _T:
        """Carry `work` out on the thread, and answer after its commit."""
        if self._is_closed:
            raise errors.StoreUnreachableError(f"{self._place}: this store was closed")
        request = _Request(work)
        self._requests.put(request)
        return await asyncio.wrap_future(request.answer)

    async def close(self) -> None:
        """Work off what waits, then give the connection back."""
        if not self._is_closed:
            self._is_closed = True
            self._requests.put(None)
            await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        try:
            connection = self._opener()
        except Exception as cause:  # noqa: BLE001  whatever it is, it belongs to who opens
            self._opened.set_exception(driver_errors.translate(cause, self._place))
            return
        self._opened.set_result(None)
        is_open = True
        while is_open:
            waiting = self._collect()
            is_open = None not in waiting
            live = [request for request in waiting if request and _is_wanted(request)]
            self._serve_together(connection, live)
        connection.close()

    def _collect(self) -> list[_Request[Any] | None]:
        found = [self._requests.get()]
        while found[-1] is not None and len(found) < _MOST_REQUESTS:
            try:
                found.append(self._requests.get_nowait())
            except queue.Empty:
                break
        return found

    def _serve_together(
        self, connection: sqlite3.Connection, requests: Sequence[_Request[Any]]
    ) -> None:
        """Commit all at once; where that fails, find out alone who can be served."""
        if not requests:
            return
        try:
            opening.insist(connection, self._begin)
        except Exception as cause:  # noqa: BLE001  the thread must outlive it
            self._refuse(requests, cause)
            return
        try:
            answers = [self._carry_out(connection, request) for request in requests]
            connection.execute("COMMIT")
        except Exception as cause:  # noqa: BLE001  (the same)
            connection.rollback()
            self._serve_apart(connection, requests, cause)
            return
        for answer in answers:
            answer()

    def _serve_apart(
        self, connection: sqlite3.Connection, requests: Sequence[_Request[Any]], cause: Exception
    ) -> None:
        if len(requests) == 1:
            self._refuse(requests, cause)
            return
        for request in requests:
            self._serve_together(connection, [request])

    def _carry_out(
        self, connection: sqlite3.Connection, request: _Request[Any]
    ) -> Callable[[], None]:
        """Do the work of one request; give the way to answer it once it is committed."""
        connection.execute("SAVEPOINT request")
        now = to_micros(self._clock.now())
        try:
            result = request.work(Transaction(connection, now))
        except Exception as cause:
            # A full disk undoes all of the transaction, neighbours included.
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


def _is_wanted(request: _Request[Any]) -> bool:
    return request.answer.set_running_or_notify_cancel()

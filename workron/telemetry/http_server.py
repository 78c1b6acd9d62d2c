"""A tiny HTTP server for probes and scrapes, on a thread of its own.

Called by `health`. It answers while the event loop is stuck, for it is asked whether that is so.
One thread holds all connections and waits for none of them: each has a few seconds in all and a
few KiB for its head, and if there are too many the oldest gives way. So nobody keeps others out.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING, Final, Self

import structlog

if TYPE_CHECKING:
    from types import TracebackType

    from workron.core.clock import Clock


_log = structlog.get_logger(__name__)
_HEAD_BYTES: Final = 8192
_REQUEST: Final = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]")
_METHODS: Final = (b"GET", b"HEAD")
_END: Final = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class HttpPage:
    """What is found at a path."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    type: str = "text/plain; charset=utf-8"


Pages = Mapping[bytes, Callable[[], HttpPage]]
"""By path, as it stands in a request."""


def http_response(head: bytes | bytearray, pages: Pages) -> bytes | None:
    """Answer a head; None while it is not complete."""
    if len(head) > _HEAD_BYTES:
        return _written(_told(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
    if _END not in head:
        return None
    request = _REQUEST.fullmatch(head.partition(b"\r\n")[0])
    if request is None:
        return _written(_told(HTTPStatus.BAD_REQUEST))
    method, target = request.groups()
    if method not in _METHODS:
        return _written(_told(HTTPStatus.METHOD_NOT_ALLOWED))
    page = _page(pages.get(target.partition(b"?")[0]))
    return _written(page, has_body=method == b"GET")


def _page(make: Callable[[], HttpPage] | None) -> HttpPage:
    if make is None:
        return _told(HTTPStatus.NOT_FOUND)
    try:
        return make()
    except Exception:  # noqa: BLE001 - whatever it is, the thread goes on answering
        _log.exception("page was not made")
        return _told(HTTPStatus.INTERNAL_SERVER_ERROR)


def _told(status: HTTPStatus) -> HttpPage:
    return HttpPage(f"{status.phrase.lower()}\n".encode(), status)


def _written(page: HttpPage, *, has_body: bool = True) -> bytes:
    lines = [
        f"HTTP/1.1 {page.status.value} {page.status.phrase}",
        f"Content-Type: {page.type}",
        f"Content-Length: {len(page.body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if page.status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    return "\r\n".join([*lines, "", ""]).encode() + (page.body if has_body else b"")


_CONNECTIONS: Final = 32
_SECONDS: Final = 5.0
_CHUNK_BYTES: Final = 4096
_MOST_BYTES: Final = 64 * 1024
"""So much is read of one connection at most, its head and what follows the head."""
_PAUSE_SECONDS: Final = 0.1
"""After a connection that could not be taken for want of descriptors; it still waits."""


class _Visit:
    """One connection: its head is read, it is answered, and then its end is waited for."""

    def __init__(self, stream: socket.socket, until: float) -> None:
        stream.setblocking(False)
        self.stream = stream
        self.until = until
        self._head = bytearray()
        self._answer = memoryview(b"")
        self._is_answered = False
        self._left = _MOST_BYTES

    def go(self, pages: Pages) -> int:
        """Read or write once, and tell which of these is next; 0: it is over."""
        return self._say() if self._answer else self._hear(pages)

    def _hear(self, pages: Pages) -> int:
        data = self.stream.recv(_CHUNK_BYTES)
        self._left -= len(data)
        if not data or self._left <= 0:
            return 0
        # What comes after the head is of no interest.
        if not self._is_answered:
            self._head += data
            self._answer = memoryview(http_response(self._head, pages) or b"")
            self._is_answered = bool(self._answer)
        return selectors.EVENT_WRITE if self._answer else selectors.EVENT_READ

    def _say(self) -> int:
        self._answer = self._answer[self.stream.send(self._answer) :]
        if self._answer:
            return selectors.EVENT_WRITE
        # Closed now, what the other side still sends would have it lose the answer.
        self.stream.shutdown(socket.SHUT_WR)
        return selectors.EVENT_READ


class HttpServer:
    """Listens from the moment it is made; OSError if it cannot."""

    def __init__(
        self, address: tuple[str, int], pages: Pages, clock: Clock, seconds_each: float = _SECONDS
    ) -> None:
        self._pages = pages
        self._clock = clock
        self._seconds_each = seconds_each
        self._visits: dict[_Visit, None] = {}
        self._is_stopping = False
        self._listener = _listener(*address)
        self._bell, self._rope = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._bell, selectors.EVENT_READ, lambda: None)
        self._thread = threading.Thread(target=self._serve, name="health", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens; the system chose it if it was asked for 0."""
        port: int = self._listener.getsockname()[1]
        return port

    def stop(self) -> None:
        """Close every connection, and return when nobody listens any more."""
        self._is_stopping = True
        # Whoever knocked in this moment may have woken it already, and it is gone.
        with contextlib.suppress(OSError):
            self._rope.send(b"!")
        self._thread.join()

    def _serve(self) -> None:
        while not self._is_stopping:
            for key, _ in self._selector.select(self._patience()):
                key.data()
            self._drop_until(self._clock.monotonic())
        self._drop_until(inf)
        for one in (self._selector, self._listener, self._bell, self._rope):
            one.close()

    def _patience(self) -> float | None:
        oldest = next(iter(self._visits), None)
        return None if oldest is None else max(0.0, oldest.until - self._clock.monotonic())

    def _accept(self) -> None:
        try:
            stream, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:
            time.sleep(_PAUSE_SECONDS)
            return
        if len(self._visits) >= _CONNECTIONS:
            self._drop(next(iter(self._visits)))
        visit = _Visit(stream, self._clock.monotonic() + self._seconds_each)
        self._visits[visit] = None
        call = functools.partial(self._attend, visit)
        self._selector.register(stream, selectors.EVENT_READ, call)

    def _attend(self, visit: _Visit) -> None:
        # It may have given way to another since it was found ready.
        if visit not in self._visits:
            return
        try:
            wanted = visit.go(self._pages)
        except BlockingIOError:
            return
        except Exception:  # noqa: BLE001 - whatever it is, the thread goes on answering
            wanted = 0
        if wanted:
            call = self._selector.get_key(visit.stream).data
            self._selector.modify(visit.stream, wanted, call)
        else:
            self._drop(visit)

    def _drop_until(self, moment: float) -> None:
        for visit in [one for one in self._visits if one.until <= moment]:
            self._drop(visit)

    def _drop(self, visit: _Visit) -> None:
        del self._visits[visit]
        self._selector.unregister(visit.stream)
        visit.stream.close()


def _listener(host: str, port: int) -> socket.socket:
    family, _, _, _, where = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.create_server(where, family=family, backlog=_CONNECTIONS)
    listener.setblocking(False)
    return listener


_EVERY_SECONDS: Final = 1.0
_STUCK_SECONDS: Final = 10.0
"""The usual lease; by then a worker whose loop is stuck has lost what it claimed."""


class EventLoopWatchdog:
    """Entered and left on the loop that it watches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turned_at = clock.monotonic()
        self._next: asyncio.TimerHandle | None = None

    def why_stuck(self) -> str | None:
        """Say that the loop does not turn; None if it does."""
        age = self._clock.monotonic() - self._turned_at
        return f"the event loop has not turned for {age:.1f} s" if age > _STUCK_SECONDS else None

    def __enter__(self) -> Self:
        self._turn()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._next is not None:
            self._next.cancel()

    def _turn(self) -> None:
        self._turned_at = self._clock.monotonic()
        self._next = asyncio.get_running_loop().call_later(_EVERY_SECONDS, self._turn)

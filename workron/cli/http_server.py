"""A tiny HTTP server for probes and scrapes, on a thread of its own.

Called by `health`. It answers while the event loop is stuck, for it is asked whether that is so.
One thread holds all connections and waits for none of them: each has a few seconds in all and a
few KiB for its head, and if there are too many the oldest gives way. So nobody keeps others out.
"""

from __future__ import annotations

import contextlib
import functools
import selectors
import socket
import threading
import time
from math import inf
from typing import TYPE_CHECKING, Final

from workron.cli import http_page

if TYPE_CHECKING:
    from workron.cli.http_page import Pages
    from workron.core.ports import Clock

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
            self._answer = memoryview(http_page.answer(self._head, pages) or b"")
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

"""The HTTP endpoint of health and metrics, served by the standard library on threads of its own.

The endpoint answers while the event loop is blocked, because it reports exactly that. A client gets
one answer and has a few seconds for all of it: reading the request, writing the answer, and waiting
for the client to close. When too many connections are open, the oldest one is closed, so the number
of threads is bounded and no client can keep a probe out.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import structlog

if TYPE_CHECKING:
    from workron.core.clock import Clock


_log = structlog.get_logger(__name__)
_MAX_CONNECTIONS: Final = 16
_CLIENT_SECONDS: Final = 10.0
_MAX_UNREAD_BYTES: Final = 64 * 1024
"""Bytes read after the request, so that closing does not discard the answer."""
_ACCEPT_PAUSE_SECONDS: Final = 0.1
"""After a connection that could not be accepted, as when the process is out of descriptors."""


class HttpPage(NamedTuple):
    """The answer at a path."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"


Pages = Mapping[str, Callable[[], HttpPage]]
"""A function for each path; it runs on the thread of a connection."""


class HealthServer(ThreadingHTTPServer):
    """Serves pages from construction until `stop`; OSError if it cannot listen."""

    daemon_threads = True
    request_queue_size = 4 * _MAX_CONNECTIONS

    def __init__(
        self,
        address: tuple[str, int],
        pages: Pages,
        clock: Clock,
        client_seconds: float = _CLIENT_SECONDS,
    ) -> None:
        family, _, _, _, where = socket.getaddrinfo(
            *address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self.address_family = family
        self.pages = pages
        self._clock = clock
        self._client_seconds = client_seconds
        self._lock = threading.Lock()
        self._deadlines: dict[socket.socket, float] = {}
        """Open connections, the oldest first."""
        super().__init__((str(where[0]), int(where[1])), _Handler)
        self.port: int = self.socket.getsockname()[1]
        self._thread = threading.Thread(target=self.serve_forever, name="health", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close all connections and the port."""
        # Wakes the accepting thread at once; without it, it polls.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.shutdown()
        self._disconnect_until(inf)
        self.server_close()
        self._thread.join()

    def server_bind(self) -> None:
        """Bind without looking up the name of the host, which may take seconds."""
        TCPServer.server_bind(self)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_ACCEPT_PAUSE_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection on a thread, in place of the oldest one if there are too many."""
        with self._lock:
            if len(self._deadlines) >= _MAX_CONNECTIONS:
                self._disconnect(next(iter(self._deadlines)))
            self._deadlines[request] = self._clock.monotonic() + self._client_seconds
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Disconnect slow clients; called after each connection and every half second."""
        self._disconnect_until(self._clock.monotonic())

    def _disconnect_until(self, moment: float) -> None:
        with self._lock:
            for request in [one for one, at in self._deadlines.items() if at <= moment]:
                self._disconnect(request)

    def _disconnect(self, request: socket.socket) -> None:
        # The thread of the connection sees its end and closes the socket.
        del self._deadlines[request]
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, after reading what the client still sends."""
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_WR)
            unread = _MAX_UNREAD_BYTES
            while unread > 0 and (data := request.recv(4096)):
                unread -= len(data)
        with self._lock:
            self._deadlines.pop(request, None)
            request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of connections."""


class _Handler(BaseHTTPRequestHandler):
    server: HealthServer
    # HTTP/0.9, the default, has no status line to report an invalid request with.
    default_request_version = "HTTP/1.0"

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            answer = page()
        except Exception:  # noqa: BLE001 - the client gets an answer whatever it is
            _log.exception("page failed", path=self.path)
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            self._answer(answer)

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)

    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_POST  # noqa: N815

    def _answer(self, page: HttpPage) -> None:
        self.send_response(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        if page.status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page.body)

    def send_error(self, code: int, *_: object, **__: object) -> None:
        # Without repeating parts of the request, as the base class does.
        status = HTTPStatus(code)
        self._answer(HttpPage(f"{status.phrase.lower()}\n".encode(), status))

    def version_string(self) -> str:
        return "workron"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base
        """Log nothing: probes come every few seconds."""


_CHECK_SECONDS: Final = 1.0
_BLOCKED_SECONDS: Final = 10.0


class EventLoopWatchdog:
    """Detects a blocked event loop; use it as a context manager on that loop."""

    def __init__(self, clock: Clock, check_seconds: float = _CHECK_SECONDS) -> None:
        self._clock = clock
        self._check_seconds = check_seconds
        self._turned_at = clock.monotonic()
        self._next: asyncio.TimerHandle | None = None

    def why_blocked(self) -> str | None:
        """Return a message if the loop is blocked."""
        age = self._clock.monotonic() - self._turned_at
        if age <= _BLOCKED_SECONDS:
            return None
        return f"the event loop has been blocked for {age:.1f} s"

    def __enter__(self) -> Self:
        self._turn()
        return self

    def __exit__(self, *_: object) -> None:
        if self._next is not None:
            self._next.cancel()

    def _turn(self) -> None:
        self._turned_at = self._clock.monotonic()
        self._next = asyncio.get_running_loop().call_later(self._check_seconds, self._turn)

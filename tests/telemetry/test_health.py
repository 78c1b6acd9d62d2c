"""The HTTP server of health and metrics: a slow client does not block other clients."""

import contextlib
import errno
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.http_client import read_all, read_answer, request, send
from tests.scheduling.conftest import ManualClock
from workron.cli import system_clock
from workron.telemetry.health import HealthServer, HttpPage, Pages

_LIMIT = 16
"""Open connections at a time."""


def _broken() -> HttpPage:
    raise ZeroDivisionError


PAGES: Pages = {"/page": lambda: HttpPage(b"words\n"), "/broken": _broken}


def _threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "health"]


@pytest.fixture
def serve() -> Iterator[Callable[..., HealthServer]]:
    servers = []

    def serve(pages: Pages = PAGES, **options: Any) -> HealthServer:
        usual: dict[str, Any] = {"clock": system_clock.CLOCK, "client_seconds": 60.0}
        servers.append(HealthServer(("127.0.0.1", 0), pages, **usual | options))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()
    assert _threads() == []


@pytest.fixture
def port(serve: Callable[..., HealthServer]) -> int:
    return serve().port


def _trickle(stream: socket.socket) -> bytes:
    """Send bytes slowly until the server closes the connection; return its answer."""
    with contextlib.suppress(ConnectionError):
        while True:
            stream.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                return stream.recv(1)
    return b""


def _flood(stream: socket.socket, head: bytes) -> None:
    stream.sendall(head)
    while True:
        stream.sendall(b"x" * 1000)


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


@pytest.mark.parametrize("path", ["/page", "/page?x=1"])
def test_page_is_served_at_its_path(port: int, path: str) -> None:
    answer = request(port, path)
    assert (answer.status, answer.body) == (200, "words\n")
    assert answer.headers["Content-Length"] == "6"
    assert answer.headers["Connection"] == "close"


def test_body_is_left_out_when_the_method_is_head(port: int) -> None:
    answer = request(port, "/page", "HEAD")
    assert (answer.status, answer.body, answer.headers["Content-Length"]) == (200, "", "6")


@pytest.mark.parametrize("path", ["/", "/page/", "/../page", "*", "/%70age"])
def test_status_is_404_when_the_path_is_unknown(port: int, path: str) -> None:
    assert request(port, path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_status_is_405_when_the_method_is_not_allowed(port: int, method: str) -> None:
    answer = request(port, "/page", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_answer_arrives_when_the_client_sends_a_body(port: int) -> None:
    head = b"POST /page HTTP/1.1\r\nContent-Length: 20000\r\n\r\n"
    assert send(port, head + b"x" * 20000).status == 405


@pytest.mark.parametrize("request_", [b"\0\xff\r\n\r\n", b"GET\r\n\r\n", b"GET /page HTTP\r\n\r\n"])
def test_status_is_400_when_the_request_is_invalid(port: int, request_: bytes) -> None:
    assert send(port, request_).status == 400


def test_status_is_431_when_the_header_is_too_long(port: int) -> None:
    assert send(port, b"GET /page HTTP/1.1\r\nX: " + b"x" * 66000).status == 431


def test_request_is_answered_when_it_arrives_byte_by_byte(port: int) -> None:
    with _connect(port) as stream:
        for byte in b"GET /page HTTP/1.0\r\n\r\n":
            stream.sendall(bytes([byte]))
        assert read_answer(stream).status == 200


def test_request_is_answered_when_the_client_has_closed_its_side(port: int) -> None:
    with _connect(port) as stream:
        stream.sendall(b"GET /page HTTP/1.1\r\n\r\n")
        stream.shutdown(socket.SHUT_WR)
        assert read_answer(stream).status == 200


def test_status_is_500_when_a_page_fails(port: int) -> None:
    assert request(port, "/broken").status == 500
    assert request(port, "/page").status == 200


@pytest.mark.parametrize("sent", [b"", b"GET /pa"])
def test_client_is_disconnected_when_its_request_is_incomplete_for_too_long(
    serve: Callable[..., HealthServer], sent: bytes
) -> None:
    with _connect(serve(client_seconds=0.05).port) as stream:
        stream.sendall(sent)
        assert read_all(stream) == b""


def test_client_is_disconnected_when_it_sends_too_slowly(
    serve: Callable[..., HealthServer],
) -> None:
    with _connect(serve(client_seconds=0.05).port) as stream:
        stream.settimeout(0.01)
        assert _trickle(stream) == b""


def test_client_is_disconnected_when_it_does_not_read(
    serve: Callable[..., HealthServer],
) -> None:
    body = b"x" * 50_000_000
    clock = ManualClock()
    server = serve({"/much": lambda: HttpPage(body), **PAGES}, clock=clock)
    with _connect(server.port) as stream:
        stream.sendall(b"GET /much HTTP/1.1\r\n\r\n")
        assert stream.recv(1) == b"H"
        clock.advance(61)
        while server._deadlines:
            assert request(server.port, "/page").status == 200
        assert 0 < len(read_all(stream)) < len(body)


def test_client_is_disconnected_when_it_keeps_sending(port: int) -> None:
    with _connect(port) as stream, pytest.raises(ConnectionError):
        _flood(stream, b"GET /page HTTP/1.1\r\n\r\n")


def test_probe_is_answered_and_threads_are_bounded_when_many_clients_are_idle(
    serve: Callable[..., HealthServer],
) -> None:
    # With the time of this clock, no client is disconnected for being slow.
    port = serve(clock=ManualClock()).port
    others = set(threading.enumerate())
    idle = [_connect(port) for _ in range(_LIMIT + 8)]
    try:
        assert request(port, "/page").status == 200
        # The thread of a disconnected client needs a moment to end.
        while len(set(threading.enumerate()) - others) > _LIMIT:
            time.sleep(0.001)
        # The oldest was disconnected; the youngest is still served.
        assert read_all(idle[0]) == b""
        idle[-1].sendall(b"GET /page HTTP/1.1\r\n\r\n")
        assert read_answer(idle[-1]).status == 200
    finally:
        for one in idle:
            one.close()


def test_connection_is_accepted_later_when_no_descriptor_is_free(
    serve: Callable[..., HealthServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = socketserver.TCPServer.get_request
    refusals = [OSError(errno.EMFILE, "too many open files")]

    def get_request(server: socketserver.TCPServer) -> Any:
        if refusals:
            raise refusals.pop()
        return accept(server)

    monkeypatch.setattr(socketserver.TCPServer, "get_request", get_request)
    assert request(serve().port, "/page").status == 200
    assert refusals == []


def test_stop_closes_every_connection_and_frees_the_port() -> None:
    server = HealthServer(("127.0.0.1", 0), PAGES, system_clock.CLOCK)
    port = server.port
    with _connect(port) as stream:
        server.stop()
        assert read_all(stream) == b""
    with pytest.raises(ConnectionRefusedError):
        _connect(port)
    HealthServer(("127.0.0.1", port), PAGES, system_clock.CLOCK).stop()


def test_listening_socket_is_not_inheritable(
    serve: Callable[..., HealthServer],
) -> None:
    assert not serve().socket.get_inheritable()


def test_server_can_be_stopped_twice(serve: Callable[..., HealthServer]) -> None:
    server = serve()
    server.stop()
    server.stop()

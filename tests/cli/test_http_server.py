"""A server that answers probes, and that no client can keep from answering the next one."""

import contextlib
import errno
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.asking import ask, heard, rest, said
from tests.scheduling.conftest import HandClock
from workron.cli import system_clock
from workron.telemetry.http_server import HttpPage, HttpServer, Pages

_LIMIT = 32
"""So many connections are held."""


def _broken() -> HttpPage:
    raise ZeroDivisionError


PAGES: Pages = {b"/page": lambda: HttpPage(b"words\n"), b"/broken": _broken}


def _threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "health"]


@pytest.fixture
def serve() -> Iterator[Callable[..., HttpServer]]:
    servers = []

    def serve(pages: Pages = PAGES, **options: Any) -> HttpServer:
        usual: dict[str, Any] = {"clock": system_clock.CLOCK, "seconds_each": 60.0}
        servers.append(HttpServer(("127.0.0.1", 0), pages, **usual | options))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()
    assert _threads() == []


@pytest.fixture
def port(serve: Callable[..., HttpServer]) -> int:
    return serve().port


def _trickle(stream: socket.socket) -> bytes:
    """Send a byte now and then until the other side has had enough; give what it said."""
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
def test_page_is_found_at_its_path(port: int, path: str) -> None:
    answer = ask(port, path)
    assert (answer.status, answer.body) == (200, "words\n")
    assert answer.headers["Content-Length"] == "6"
    assert answer.headers["Connection"] == "close"


def test_head_is_answered_as_get_without_the_body(port: int) -> None:
    answer = ask(port, "/page", "HEAD")
    assert (answer.status, answer.body, answer.headers["Content-Length"]) == (200, "", "6")


@pytest.mark.parametrize("path", ["/", "/page/", "//page", "/../page", "*", "/%70age"])
def test_other_path_is_not_found(port: int, path: str) -> None:
    assert ask(port, path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_method_is_not_allowed(port: int, method: str) -> None:
    answer = ask(port, "/page", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_answer_is_not_lost_to_a_body_that_nobody_reads(port: int) -> None:
    head = b"POST /page HTTP/1.1\r\nContent-Length: 20000\r\n\r\n"
    assert said(port, head + b"x" * 20000).status == 405


@pytest.mark.parametrize(
    "request_", [b"\r\n\r\n", b"\0\xff\r\n\r\n", b"GET /page\r\n\r\n", b"GET /page HTTP/2\r\n\r\n"]
)
def test_what_is_no_request_is_told_so(port: int, request_: bytes) -> None:
    assert said(port, request_).status == 400


def test_head_that_is_too_long_is_refused_before_its_end(port: int) -> None:
    assert said(port, b"GET /page HTTP/1.1\r\nX: " + b"x" * 9000).status == 431


def test_head_may_come_byte_by_byte(port: int) -> None:
    with _connect(port) as stream:
        for byte in b"GET /page HTTP/1.0\r\n\r\n":
            stream.sendall(bytes([byte]))
        assert heard(stream).status == 200


def test_client_may_close_its_half_before_the_answer(port: int) -> None:
    with _connect(port) as stream:
        stream.sendall(b"GET /page HTTP/1.1\r\n\r\n")
        stream.shutdown(socket.SHUT_WR)
        assert heard(stream).status == 200


def test_page_that_fails_is_an_error_and_the_next_one_is_answered(port: int) -> None:
    assert ask(port, "/broken").status == 500
    assert ask(port, "/page").status == 200


@pytest.mark.parametrize("sent", [b"", b"GET /pa"])
def test_client_that_sends_no_whole_head_is_left_when_its_time_is_over(
    serve: Callable[..., HttpServer], sent: bytes
) -> None:
    with _connect(serve(seconds_each=0.05).port) as stream:
        stream.sendall(sent)
        assert rest(stream) == b""


def test_client_that_trickles_gets_no_more_time_for_it(serve: Callable[..., HttpServer]) -> None:
    with _connect(serve(seconds_each=0.05).port) as stream:
        stream.settimeout(0.01)
        assert _trickle(stream) == b""


def test_client_that_does_not_read_is_left_when_its_time_is_over(
    serve: Callable[..., HttpServer],
) -> None:
    much = b"x" * 50_000_000
    clock = HandClock()
    server = serve({b"/much": lambda: HttpPage(much), **PAGES}, clock=clock)
    with _connect(server.port) as stream:
        stream.sendall(b"GET /much HTTP/1.1\r\n\r\n")
        assert stream.recv(1) == b"H"
        clock.turn(61)
        # The server looks at its clock whenever anything happens.
        assert ask(server.port, "/page").status == 200
        assert 0 < len(rest(stream)) < len(much)


def test_client_that_goes_on_after_the_answer_is_left(port: int) -> None:
    with _connect(port) as stream, pytest.raises(ConnectionError):
        _flood(stream, b"GET /page HTTP/1.1\r\n\r\n")


def test_idle_clients_keep_nobody_out_and_hold_no_threads(port: int) -> None:
    threads = threading.active_count()
    idle = [_connect(port) for _ in range(_LIMIT + 8)]
    try:
        assert ask(port, "/page").status == 200
        assert threading.active_count() == threads
        # The oldest gave way; the youngest is still heard.
        assert rest(idle[0]) == b""
        idle[-1].sendall(b"GET /page HTTP/1.1\r\n\r\n")
        assert heard(idle[-1]).status == 200
    finally:
        for one in idle:
            one.close()


class _Crowded:
    """A listener of a process that has no descriptor left, for a moment."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.refused = 0

    def accept(self) -> Any:
        if not self.refused:
            self.refused += 1
            raise OSError(errno.EMFILE, "too many open files")
        return self._listener.accept()

    def close(self) -> None:
        self._listener.close()


def test_connection_waits_while_there_is_no_descriptor_for_it(
    serve: Callable[..., HttpServer],
) -> None:
    server = serve()
    port = server.port
    server._listener = crowded = _Crowded(server._listener)  # type: ignore[assignment]
    assert ask(port, "/page").status == 200
    assert crowded.refused == 1


def test_stop_closes_every_connection_and_frees_the_port() -> None:
    server = HttpServer(("127.0.0.1", 0), PAGES, system_clock.CLOCK)
    port = server.port
    with _connect(port) as stream:
        server.stop()
        assert rest(stream) == b""
    with pytest.raises(ConnectionRefusedError):
        _connect(port)
    HttpServer(("127.0.0.1", port), PAGES, system_clock.CLOCK).stop()


def test_no_command_inherits_a_socket_of_it(serve: Callable[..., HttpServer]) -> None:
    server = serve()
    assert not server._listener.get_inheritable()
    assert not server._bell.get_inheritable()


def test_server_that_has_noticed_by_itself_that_it_is_to_stop_can_be_stopped(
    serve: Callable[..., HttpServer],
) -> None:
    server = serve()
    server._is_stopping = True
    with socket.create_connection(("127.0.0.1", server.port)):
        server._thread.join(30)
    server.stop()
    server.stop()

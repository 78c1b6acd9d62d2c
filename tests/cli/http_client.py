"""An HTTP client on a plain socket, so that a test sees every byte of the answer."""

import socket
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families as families


@dataclass(frozen=True)
class HttpAnswer:
    """The answer to one request."""

    status: int
    headers: dict[str, str]
    body: str


def request(port: int, path: str, method: str = "GET") -> HttpAnswer:
    """Send one request and read to the end of the connection."""
    return send(port, f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


def send(port: int, request: bytes) -> HttpAnswer:
    """Send bytes and read to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.sendall(request)
        return read_answer(stream)


def read_answer(stream: socket.socket) -> HttpAnswer:
    """Read to the end of the connection."""
    head, _, body = read_all(stream).decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    return HttpAnswer(int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body)


def read_all(stream: socket.socket) -> bytes:
    """Read to the end of the connection, also if that is a reset."""
    parts = []
    try:
        while part := stream.recv(4096):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def samples(text: str) -> dict[str, float]:
    """Parse metrics as Prometheus does: each series by its name and the values of its labels."""
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in families(text)
        for sample in family.samples
    }

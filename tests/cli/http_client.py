"""Asks a small HTTP server over a plain socket, so that a test sees every byte of the answer."""

import socket
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families as families


@dataclass(frozen=True)
class Heard:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: str


def ask(port: int, path: str, method: str = "GET") -> Heard:
    """Send one request and read to the end of the connection."""
    return said(port, f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


def said(port: int, request: bytes) -> Heard:
    """Send bytes and read to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.sendall(request)
        return heard(stream)


def heard(stream: socket.socket) -> Heard:
    """Read to the end of the connection."""
    head, _, body = rest(stream).decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    return Heard(int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body)


def rest(stream: socket.socket) -> bytes:
    """Read to the end of the connection, however that comes."""
    parts = []
    try:
        while part := stream.recv(4096):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def samples(text: str) -> dict[str, float]:
    """Read what Prometheus reads: each series by its name and the values of its labels."""
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in families(text)
        for sample in family.samples
    }

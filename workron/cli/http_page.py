"""From the head of an HTTP request to the bytes of its answer; no sockets here.

Called by `http_server`. Every answer ends its connection, so nothing that follows a head is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import structlog

_log = structlog.get_logger(__name__)
_HEAD_BYTES: Final = 8192
_REQUEST: Final = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]")
_METHODS: Final = (b"GET", b"HEAD")
_END: Final = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Page:
    """What is found at a path."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    type: str = "text/plain; charset=utf-8"


Pages = Mapping[bytes, Callable[[], Page]]
"""By path, as it stands in a request."""


def answer(head: bytes | bytearray, pages: Pages) -> bytes | None:
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


def _page(make: Callable[[], Page] | None) -> Page:
    if make is None:
        return _told(HTTPStatus.NOT_FOUND)
    try:
        return make()
    except Exception:  # noqa: BLE001 - whatever it is, the thread goes on answering
        _log.exception("page was not made")
        return _told(HTTPStatus.INTERNAL_SERVER_ERROR)


def _told(status: HTTPStatus) -> Page:
    return Page(f"{status.phrase.lower()}\n".encode(), status)


def _written(page: Page, *, has_body: bool = True) -> bytes:
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

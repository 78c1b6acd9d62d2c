"""The requests that the server received: parsed from their paths, and logged for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.controller.fake_api.kinds import Kind
from tests.controller.fake_api.notifier import Notifier

APPLY_PATCH = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
_WRITES = frozenset({"create", "patch", "apply", "delete", "update"})
_VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update"}


@dataclass
class ApiRequest:
    """One request."""

    verb: str
    """get, list, watch, create, patch, apply or delete; `discover` if it names no object."""
    path: str
    query: dict[str, str]
    body: Any = None
    content_type: str = ""
    kind: Kind | None = None
    namespace: str | None = None
    name: str | None = None
    subresource: str = ""
    code: int | None = field(default=None, compare=False)
    """The status code of the answer; None before it is sent."""

    @property
    def plural(self) -> str:
        """The plural of its resource."""
        return self.kind.resource.plural if self.kind else ""

    @property
    def is_continued(self) -> bool:
        """Whether it asks for a later page of a list."""
        return "continue" in self.query

    @property
    def is_renewal(self) -> bool:
        """Whether it renews a Lease of the same holder."""
        return self.plural == "leases" and "holderIdentity" not in self.body["spec"]


async def parse(http_request: web.Request, kinds: Iterable[Kind]) -> ApiRequest:
    """Parse a request; its kind is None if that is not among those that are served."""
    text = await http_request.text()
    request = ApiRequest(
        "discover",
        http_request.path,
        dict(http_request.query),
        json.loads(text) if text else None,
        http_request.headers.get("Content-Type", ""),
    )
    segments = request.path.strip("/").split("/")
    if segments[0] == "api":
        group, (version, rest) = "", _split(segments[1:])
    elif segments[0] == "apis" and len(segments) > 1:
        group, (version, rest) = segments[1], _split(segments[2:])
    else:
        return request
    if rest:
        _locate(request, rest)
        request.kind = _kind(kinds, group, version, rest[0])
        request.verb = _verb(http_request.method, request)
    return request


def _split(segments: list[str]) -> tuple[str, list[str]]:
    return (segments[0], segments[1:]) if segments else ("", [])


def _locate(request: ApiRequest, rest: list[str]) -> None:
    """Parse the names in a path, and leave the plural as its first segment."""
    if rest[0] == "namespaces" and len(rest) > 2:
        request.namespace = rest[1]
        del rest[:2]
    request.name = rest[1] if len(rest) > 1 else None
    request.subresource = rest[2] if len(rest) > 2 else ""


def _kind(kinds: Iterable[Kind], group: str, version: str, plural: str) -> Kind | None:
    for kind in kinds:
        resource = kind.resource
        if (resource.group, resource.version, resource.plural) == (group, version, plural):
            return kind
    return None


def _verb(method: str, request: ApiRequest) -> str:
    if method == "GET":
        is_watch = request.query.get("watch") in {"1", "true"}
        return "get" if request.name else "watch" if is_watch else "list"
    return "apply" if request.content_type == APPLY_PATCH else _VERBS.get(method, method)


class RequestLog:
    """All requests, in the order in which they came."""

    def __init__(self) -> None:
        self.all: list[ApiRequest] = []
        self.notifier = Notifier()

    def add(self, request: ApiRequest) -> None:
        self.all.append(request)
        self.notifier.notify()

    def record_answer(self, request: ApiRequest, code: int) -> None:
        request.code = code
        self.notifier.notify()

    @property
    def writes(self) -> list[ApiRequest]:
        """The requests that change an object."""
        return [request for request in self.all if request.verb in _WRITES]

    def matching(self, **fields: Any) -> list[ApiRequest]:
        """Return requests by their attributes: `matching(verb="patch", plural="pods")`."""
        return [request for request in self.all if matches(request, fields)]

    async def wait_for(self, count: int, **fields: Any) -> list[ApiRequest]:
        """Wait until that many requests match."""
        await self.notifier.wait_until(lambda: len(self.matching(**fields)) >= count)
        return self.matching(**fields)


def matches(request: ApiRequest, fields: dict[str, Any]) -> bool:
    """Return whether a request has these attributes."""
    return all(getattr(request, name) == value for name, value in fields.items())

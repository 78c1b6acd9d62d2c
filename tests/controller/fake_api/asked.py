"""The requests that the fake was asked, read from their paths, and kept for tests to count."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.controller.fake_api.kinds import Kind
from tests.controller.fake_api.news import News

APPLY = "application/apply-patch+yaml"
_WRITES = frozenset({"create", "patch", "apply", "delete", "update"})
_VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update"}


@dataclass
class Asked:
    """One request."""

    verb: str
    """get, list, watch, create, patch, apply, delete; `discover` for what is about no object."""
    path: str
    query: dict[str, str]
    body: Any = None
    form: str = ""
    kind: Kind | None = None
    namespace: str | None = None
    name: str | None = None
    part: str = ""
    code: int | None = field(default=None, compare=False)
    """What was answered; None while nothing is."""

    @property
    def plural(self) -> str:
        """Of what kind it is about."""
        return self.kind.resource.plural if self.kind else ""

    @property
    def is_continued(self) -> bool:
        """Whether it is about a later part of a list."""
        return "continue" in self.query

    @property
    def is_renewal(self) -> bool:
        """Whether somebody who holds a Lease wants to go on."""
        return self.plural == "leases" and "holderIdentity" not in self.body["spec"]


async def read(request: web.Request, kinds: Iterable[Kind]) -> Asked:
    """Read a request."""
    text = await request.text()
    form = request.headers.get("Content-Type", "")
    body = json.loads(text) if text else None
    asked = Asked("discover", request.path, dict(request.query), body, form)
    steps = request.path.strip("/").split("/")
    group, version, rest = ("", *_split(steps[1:])) if steps[0] == "api" else _grouped(steps)
    if rest:
        _locate(asked, rest)
        asked.kind = _kind(kinds, group, version, rest)
        asked.verb = _verb(request, asked)
    return asked


def _grouped(steps: list[str]) -> tuple[str, str, list[str]]:
    if steps[0] != "apis" or len(steps) < 2:
        return "", "", []
    return (steps[1], *_split(steps[2:]))


def _split(steps: list[str]) -> tuple[str, list[str]]:
    return (steps[0], steps[1:]) if steps else ("", [])


def _locate(asked: Asked, rest: list[str]) -> None:
    """Take the path apart, and leave the plural in front of it."""
    if rest[0] == "namespaces" and len(rest) > 2:
        asked.namespace = rest[1]
        del rest[:2]
    asked.name = rest[1] if len(rest) > 1 else None
    asked.part = rest[2] if len(rest) > 2 else ""


def _kind(kinds: Iterable[Kind], group: str, version: str, rest: list[str]) -> Kind | None:
    wanted = (group, version, rest[0])
    for kind in kinds:
        place = kind.resource
        if (place.group, place.version, place.plural) == wanted:
            return kind
    return None


def _verb(request: web.Request, asked: Asked) -> str:
    if request.method == "GET":
        is_watch = asked.query.get("watch") in {"1", "true"}
        return "get" if asked.name else "watch" if is_watch else "list"
    return "apply" if asked.form == APPLY else _VERBS.get(request.method, request.method)


class Record:
    """All requests, in the order in which they came."""

    def __init__(self) -> None:
        self.all: list[Asked] = []
        self.news = News()

    def add(self, asked: Asked) -> None:
        """Keep one that has come."""
        self.all.append(asked)
        self.news.ring()

    def answered(self, asked: Asked, code: int) -> None:
        """Note what was answered."""
        asked.code = code
        self.news.ring()

    @property
    def writes(self) -> list[Asked]:
        """Those that would change something."""
        return [asked for asked in self.all if asked.verb in _WRITES]

    def of(self, **marks: Any) -> list[Asked]:
        """Those with these marks: `of(verb="patch", plural="workronjobs", part="status")`."""
        return [
            asked
            for asked in self.all
            if all(getattr(asked, mark) == value for mark, value in marks.items())
        ]

    async def reached(self, count: int, **marks: Any) -> list[Asked]:
        """Return once there were so many of them."""
        await self.news.until(lambda: len(self.of(**marks)) >= count)
        return self.of(**marks)

"""Watches: each an open answer that tells what changes, as long as tests let it."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.controller.fake_api import refused, selectors
from tests.controller.fake_api.asked import Asked
from tests.controller.fake_api.kinds import Json, Kind
from tests.controller.fake_api.selectors import Chooses
from tests.controller.fake_api.storage import Change, Storage


@dataclass
class Stream:
    """One watch."""

    kind: Kind
    namespace: str | None
    chooses: Chooses
    cursor: int
    has_bookmarks: bool
    transport: asyncio.Transport | None
    waiting: deque[Json] = field(default_factory=deque)
    is_ending: bool = False

    def event(self, change: Change) -> Json | None:
        """Word a change as this watch sees it: what leaves its selection is deleted to it."""
        if change.kind != self.kind:
            return None
        before, after = self._seen(change.before), self._seen(change.after)
        if after is not None:
            return {"type": "ADDED" if before is None else "MODIFIED", "object": after}
        if before is None:
            return None
        about = before["metadata"] | {"resourceVersion": str(change.version)}
        return {"type": "DELETED", "object": before | {"metadata": about}}

    def _seen(self, body: Json | None) -> Json | None:
        if body is None or self.namespace not in {None, body["metadata"].get("namespace")}:
            return None
        return body if self.chooses(body) else None

    @property
    def bookmark(self) -> Json:
        """Tell how far it is."""
        about = {"resourceVersion": str(self.cursor), "creationTimestamp": None}
        body = {"kind": self.kind.name, "apiVersion": self.kind.version, "metadata": about}
        return {"type": "BOOKMARK", "object": body}


@dataclass
class _Slip:
    """An event that comes not once, but so many times."""

    copies: int
    type: str
    name: str | None
    times: float

    def copies_of(self, event: Json) -> int:
        name = event["object"]["metadata"].get("name")
        if self.times < 1 or event["type"] != self.type or self.name not in {None, name}:
            return 1
        self.times -= 1
        return self.copies


class Streams:
    """All watches, and what tests do to them."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._news = storage.news
        self._held: set[Kind] = set()
        self._slips: list[_Slip] = []
        self.open: list[Stream] = []

    def of(self, kind: Kind) -> list[Stream]:
        """Those that are open now."""
        return [stream for stream in self.open if stream.kind == kind]

    async def opened(self, kind: Kind, count: int = 1) -> list[Stream]:
        """Return once so many are open."""
        await self._news.until(lambda: len(self.of(kind)) >= count)
        return self.of(kind)

    def hold(self, kind: Kind) -> None:
        """Let these watches say nothing, open or yet to come: silence, or what comes late."""
        self._held.add(kind)

    def let_go(self, kind: Kind) -> None:
        """Let them say what they held."""
        self._held.discard(kind)
        self._news.ring()

    def lose(self, type_: str, name: str | None = None, times: float = 1) -> None:
        """Never tell of the next such event."""
        self._slips.append(_Slip(0, type_, name, times))

    def repeat(self, type_: str, name: str | None = None, times: float = 1) -> None:
        """Tell of the next such event twice."""
        self._slips.append(_Slip(2, type_, name, times))

    def send(self, kind: Kind, type_: str, body: Json) -> None:
        """Say this, whatever has happened."""
        for stream in self.of(kind):
            stream.waiting.append({"type": type_, "object": body})
        self._news.ring()

    def fail(self, kind: Kind, code: int) -> None:
        """Send an ERROR, which is how a server gives up a watch that is open, and end it."""
        status = refused.RefusedError(code, "Expired" if code == 410 else "InternalError", "over")
        self.send(kind, "ERROR", status.status)
        self.end(kind)

    def bookmark(self, kind: Kind) -> None:
        """Tell those who want to know how far they are."""
        for stream in self.of(kind):
            if stream.has_bookmarks:
                stream.waiting.append(stream.bookmark)
        self._news.ring()

    def end(self, kind: Kind | None = None) -> None:
        """End these watches in good order, or all."""
        for stream in self.open if kind is None else self.of(kind):
            stream.is_ending = True
        self._news.ring()

    def cut(self, kind: Kind) -> None:
        """Cut the lines of these watches."""
        for stream in self.of(kind):
            if stream.transport is not None:
                stream.transport.abort()
        self.end(kind)

    async def answer(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        """Answer a watch until it ends."""
        assert asked.kind is not None
        since = int(asked.query.get("resourceVersion") or 0)
        stream = Stream(
            asked.kind,
            asked.namespace,
            selectors.read(asked.kind, asked.query),
            since or self._storage.version,
            asked.query.get("allowWatchBookmarks") == "true",
            request.transport,
        )
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        if since and since < self._storage.oldest:
            said = f"too old resource version: {since} ({self._storage.oldest})"
            await _write(answer, {"type": "ERROR", "object": refused.expired(said).status})
            return answer
        if not since:
            stream.waiting.extend(self._present(stream))
        await self._serve(stream, answer, float(asked.query.get("timeoutSeconds", 3600)))
        return answer

    def _present(self, stream: Stream) -> Iterator[Json]:
        for body in filter(stream.chooses, self._storage.all(stream.kind, stream.namespace)):
            yield {"type": "ADDED", "object": body}

    async def _serve(self, stream: Stream, answer: web.StreamResponse, seconds: float) -> None:
        self.open.append(stream)
        self._news.ring()
        try:
            async with asyncio.timeout(seconds):
                while not stream.is_ending or stream.waiting:
                    await self._news.until(lambda: self._has_news(stream))
                    await self._tell(stream, answer)
        except TimeoutError:
            # A real server says how far it was before it ends a watch whose time is over.
            if stream.has_bookmarks:
                await _write(answer, stream.bookmark)
        except ConnectionError:
            return  # there is nobody left to tell
        finally:
            self.open.remove(stream)
            self._news.ring()

    def _has_news(self, stream: Stream) -> bool:
        is_behind = stream.waiting or self._storage.version > stream.cursor
        return stream.is_ending or bool(is_behind and stream.kind not in self._held)

    async def _tell(self, stream: Stream, answer: web.StreamResponse) -> None:
        while stream.waiting:
            await _write(answer, stream.waiting.popleft())
        changes = [] if stream.is_ending else self._storage.since(stream.cursor)
        if not changes and not stream.is_ending:
            # What came meanwhile is forgotten already: it was of no interest here.
            stream.cursor = self._storage.version
        for change in changes:
            stream.cursor = change.version
            event = stream.event(change)
            for _ in range(self._copies(event) if event else 0):
                await _write(answer, event)

    def _copies(self, event: Json) -> int:
        for slip in self._slips:
            copies = slip.copies_of(event)
            if copies != 1:
                return copies
        return 1


async def _write(answer: web.StreamResponse, event: Any) -> None:
    await answer.write(json.dumps(event).encode() + b"\n")

"""Watches: open responses that send events, and the faults that tests inject into them."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from aiohttp import web

from tests.controller.fake_api import selectors, status_errors
from tests.controller.fake_api.kinds import Json, Kind
from tests.controller.fake_api.requests import ApiRequest
from tests.controller.fake_api.selectors import Selector
from tests.controller.fake_api.storage import Change, Storage


@dataclass
class Watch:
    """One open watch."""

    kind: Kind
    namespace: str | None
    selector: Selector
    version: int
    """The version up to which events were sent."""
    has_bookmarks: bool
    transport: asyncio.Transport | None
    pending: deque[Json] = field(default_factory=deque)
    is_ending: bool = False

    def event(self, change: Change) -> Json | None:
        """Return the event of a change; an object that leaves the selection is deleted."""
        if change.kind != self.kind:
            return None
        before, after = self._selected(change.before), self._selected(change.after)
        if after is not None:
            return {"type": "ADDED" if before is None else "MODIFIED", "object": after}
        if before is None:
            return None
        metadata = before["metadata"] | {"resourceVersion": str(change.version)}
        return {"type": "DELETED", "object": before | {"metadata": metadata}}

    def _selected(self, body: Json | None) -> Json | None:
        if body is None or self.namespace not in {None, body["metadata"].get("namespace")}:
            return None
        return body if self.selector(body) else None

    @property
    def bookmark(self) -> Json:
        """The event that has the version up to which events were sent."""
        metadata = {"resourceVersion": str(self.version), "creationTimestamp": None}
        body = {"kind": self.kind.name, "apiVersion": self.kind.version, "metadata": metadata}
        return {"type": "BOOKMARK", "object": body}


@dataclass
class _EventFault:
    """Events that are sent a number of times other than once."""

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


class Watches:
    """All watches, and their faults."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._notifier = storage.notifier
        self._paused: set[Kind] = set()
        self._faults: list[_EventFault] = []
        self._open: list[Watch] = []

    def _of(self, kind: Kind) -> list[Watch]:
        return [watch for watch in self._open if watch.kind == kind]

    async def wait_until_open(self, kind: Kind, count: int = 1) -> list[Watch]:
        """Wait until that many watches of a kind are open."""
        await self._notifier.wait_until(lambda: len(self._of(kind)) >= count)
        return self._of(kind)

    def pause(self, kind: Kind) -> None:
        """Send no events of a kind, in open and in future watches."""
        self._paused.add(kind)

    def resume(self, kind: Kind) -> None:
        """Send the events that were delayed, and those that follow."""
        self._paused.discard(kind)
        self._notifier.notify()

    def drop(self, type_: str, name: str | None = None, times: float = 1) -> None:
        """Do not send the next such event."""
        self._faults.append(_EventFault(0, type_, name, times))

    def duplicate(self, type_: str, name: str | None = None, times: float = 1) -> None:
        """Send the next such event twice."""
        self._faults.append(_EventFault(2, type_, name, times))

    def fail(self, kind: Kind, code: int) -> None:
        """Send the event ERROR, by which a server gives up an open watch, and end the watches."""
        reason = "Expired" if code == HTTPStatus.GONE else "InternalError"
        error = status_errors.StatusError(code, reason, "failed by the test")
        for watch in self._of(kind):
            watch.pending.append({"type": "ERROR", "object": error.status})
        self.end(kind)

    def bookmark(self, kind: Kind) -> None:
        """Send a bookmark to the watches that ask for bookmarks."""
        for watch in self._of(kind):
            if watch.has_bookmarks:
                watch.pending.append(watch.bookmark)
        self._notifier.notify()

    def end(self, kind: Kind | None = None) -> None:
        """End the watches of a kind, or all."""
        for watch in self._open if kind is None else self._of(kind):
            watch.is_ending = True
        self._notifier.notify()

    def cut(self, kind: Kind) -> None:
        """Abort the connections of the watches of a kind."""
        for watch in self._of(kind):
            if watch.transport is not None:
                watch.transport.abort()
        self.end(kind)

    async def respond(self, http_request: web.Request, request: ApiRequest) -> web.StreamResponse:
        """Send events until the watch ends."""
        assert request.kind is not None
        since = int(request.query.get("resourceVersion") or 0)
        watch = Watch(
            request.kind,
            request.namespace,
            selectors.parse(request.kind, request.query),
            since or self._storage.version,
            request.query.get("allowWatchBookmarks") == "true",
            http_request.transport,
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(http_request)
        if since and since < self._storage.oldest:
            message = f"too old resource version: {since} ({self._storage.oldest})"
            status = status_errors.expired(message).status
            await _write(response, {"type": "ERROR", "object": status})
            return response
        if not since:
            existing = self._storage.all(watch.kind, watch.namespace)
            selected = filter(watch.selector, existing)
            watch.pending.extend({"type": "ADDED", "object": body} for body in selected)
        await self._serve(watch, response, float(request.query.get("timeoutSeconds", 3600)))
        return response

    async def _serve(self, watch: Watch, response: web.StreamResponse, seconds: float) -> None:
        self._open.append(watch)
        self._notifier.notify()
        try:
            async with asyncio.timeout(seconds):
                while not watch.is_ending or watch.pending:
                    await self._notifier.wait_until(lambda: self._has_events(watch))
                    await self._send_events(watch, response)
        except TimeoutError:
            # A real server sends a last bookmark before it ends a watch at its timeout.
            if watch.has_bookmarks:
                await _write(response, watch.bookmark)
        except ConnectionError:
            return  # the client has disconnected
        finally:
            self._open.remove(watch)
            self._notifier.notify()

    def _has_events(self, watch: Watch) -> bool:
        is_behind = watch.pending or self._storage.version > watch.version
        return watch.is_ending or bool(is_behind and watch.kind not in self._paused)

    async def _send_events(self, watch: Watch, response: web.StreamResponse) -> None:
        while watch.pending:
            await _write(response, watch.pending.popleft())
        changes = [] if watch.is_ending else self._storage.since(watch.version)
        if not changes and not watch.is_ending:
            # A compaction has dropped the changes: none of them was for this watch.
            watch.version = self._storage.version
        for change in changes:
            watch.version = change.version
            event = watch.event(change)
            for _ in range(self._copies(event) if event else 0):
                await _write(response, event)

    def _copies(self, event: Json) -> int:
        for fault in self._faults:
            copies = fault.copies_of(event)
            if copies != 1:
                return copies
        return 1


async def _write(response: web.StreamResponse, event: Any) -> None:
    await response.write(json.dumps(event).encode() + b"\n")

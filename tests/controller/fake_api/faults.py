"""Faults for requests that match: after a number that succeed, and for a number of times."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from aiohttp import web

from tests.controller.fake_api import requests
from tests.controller.fake_api.requests import ApiRequest
from tests.controller.fake_api.status_errors import StatusError

Proceed = Callable[[], Awaitable[web.StreamResponse]]
_Effect = Callable[[web.Request, Proceed], Awaitable[web.StreamResponse]]

_REASONS = {
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.CONFLICT: "Conflict",
    HTTPStatus.GONE: "Expired",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Invalid",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalError",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable",
}


@dataclass
class Fault:
    """A fault of some requests."""

    effect: _Effect
    fields: dict[str, Any]
    """As in `RequestLog.matching`."""
    times: float
    after: int
    count: int = 0
    """How often it has occurred."""

    def occurs_for(self, request: ApiRequest) -> bool:
        """Return whether it applies to this request, and count it."""
        if self.count >= self.times or not requests.matches(request, self.fields):
            return False
        self.after -= 1
        self.count += self.after < 0
        return self.after < 0


class Faults:
    """All faults; if several match, the one that was added first applies."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def refuse(
        self, code: int, *, retry_after: float | None = None, text: str | None = None, **when: Any
    ) -> Fault:
        """Answer with an error; `text` instead of a Status, as a proxy does."""

        async def effect(_: web.Request, __: Proceed) -> web.StreamResponse:
            headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
            if text is not None:
                return web.Response(status=code, text=text, headers=headers)
            status = StatusError(code, _REASONS[HTTPStatus(code)], "refused by the test").status
            return web.json_response(status, status=code, headers=headers)

        return self._add(effect, when)

    def leave_unanswered(self, **when: Any) -> Fault:
        """Accept the request and never answer."""

        async def effect(_: web.Request, __: Proceed) -> web.StreamResponse:
            await asyncio.Event().wait()
            raise AssertionError

        return self._add(effect, when)

    def hold(self, until: asyncio.Event, **when: Any) -> Fault:
        """Accept the request, and carry it out when the event is set."""

        async def effect(_: web.Request, proceed: Proceed) -> web.StreamResponse:
            await until.wait()
            return await proceed()

        return self._add(effect, when)

    def disconnect(self, *, is_done: bool, **when: Any) -> Fault:
        """Abort the connection instead of answering, after the request was carried out or not."""

        async def effect(http_request: web.Request, proceed: Proceed) -> web.StreamResponse:
            answer = await proceed() if is_done else web.Response()
            if http_request.transport is not None:
                http_request.transport.abort()
            return answer

        return self._add(effect, when)

    def run_before(self, action: Callable[[], object], **when: Any) -> Fault:
        """Run an action right before the request is carried out."""

        async def effect(_: web.Request, proceed: Proceed) -> web.StreamResponse:
            action()
            return await proceed()

        return self._add(effect, when)

    def clear(self) -> None:
        self._faults.clear()

    async def handle(
        self, http_request: web.Request, request: ApiRequest, proceed: Proceed
    ) -> web.StreamResponse:
        """Carry out a request, with the first fault that applies."""
        for fault in self._faults:
            if fault.occurs_for(request):
                return await fault.effect(http_request, proceed)
        return await proceed()

    def _add(self, effect: _Effect, when: dict[str, Any]) -> Fault:
        times, after = when.pop("times", 1), when.pop("after", 0)
        self._faults.append(Fault(effect, when, times, after))
        return self._faults[-1]

"""What goes wrong on demand: for requests that match, so many times, after so many that go well."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.controller.fake_api.asked import Asked
from tests.controller.fake_api.refused import RefusedError

Proceed = Callable[[], Awaitable[web.StreamResponse]]
_Effect = Callable[[web.Request, Proceed], Awaitable[web.StreamResponse]]

_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    400: "BadRequest",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass
class Fault:
    """One thing that goes wrong."""

    effect: _Effect
    marks: dict[str, Any]
    """As in `Record.of`."""
    times: float
    after: int
    met: int = 0
    """How often it has struck."""

    def strikes(self, asked: Asked) -> bool:
        """Tell whether it is this one's turn to go wrong, and count."""
        if self.met >= self.times:
            return False
        if any(getattr(asked, mark) != value for mark, value in self.marks.items()):
            return False
        self.after -= 1
        self.met += self.after < 0
        return self.after < 0


class Faults:
    """All that may go wrong; of two that match, the one that was asked for first does."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def refuse(
        self, code: int, *, retry_after: float | None = None, text: str | None = None, **when: Any
    ) -> Fault:
        """Answer this instead; `text` in place of a Status, as a proxy would."""

        async def effect(_: web.Request, __: Proceed) -> web.StreamResponse:
            headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
            if text is not None:
                return web.Response(status=code, text=text, headers=headers)
            status = RefusedError(code, _REASONS[code], "as the test wants it").status
            return web.json_response(status, status=code, headers=headers)

        return self._add(effect, when)

    def silence(self, **when: Any) -> Fault:
        """Take the request, and never answer."""

        async def effect(_: web.Request, __: Proceed) -> web.StreamResponse:
            await asyncio.Event().wait()
            raise AssertionError

        return self._add(effect, when)

    def hold(self, gate: asyncio.Event, **when: Any) -> Fault:
        """Take the request, and handle it when the gate opens."""

        async def effect(_: web.Request, proceed: Proceed) -> web.StreamResponse:
            await gate.wait()
            return await proceed()

        return self._add(effect, when)

    def hang_up(self, *, is_done: bool, **when: Any) -> Fault:
        """Cut the line instead of an answer, after doing what was asked or without doing it."""

        async def effect(request: web.Request, proceed: Proceed) -> web.StreamResponse:
            answer = await proceed() if is_done else web.Response()
            if request.transport is not None:
                request.transport.abort()
            return answer

        return self._add(effect, when)

    def meanwhile(self, action: Callable[[], object], **when: Any) -> Fault:
        """Do something right before such a request is looked at: in a gap, as it were."""

        async def effect(_: web.Request, proceed: Proceed) -> web.StreamResponse:
            action()
            return await proceed()

        return self._add(effect, when)

    def clear(self) -> None:
        """Let all go well again."""
        self._faults.clear()

    async def pass_by(
        self, request: web.Request, asked: Asked, proceed: Proceed
    ) -> web.StreamResponse:
        """Let the request be handled, or go wrong."""
        for fault in self._faults:
            if fault.strikes(asked):
                return await fault.effect(request, proceed)
        return await proceed()

    def _add(self, effect: _Effect, when: dict[str, Any]) -> Fault:
        times, after = when.pop("times", 1), when.pop("after", 0)
        self._faults.append(Fault(effect, when, times, after))
        return self._faults[-1]

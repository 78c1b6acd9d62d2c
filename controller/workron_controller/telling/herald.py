"""Writes Events, slowly and in nobody's way: who has a notice leaves it here and goes on.

An Event is a courtesy, as what it says stands in a status, too. So one that finds no room, or is
not taken by the API server in time, is left out, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import functools
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from workron_controller import resources
from workron_controller.api import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron.core.ports import Clock, Sleep
    from workron_controller.api.place import Place
    from workron_controller.api.retrying import Retrying
    from workron_controller.telling.notices import Notice

MOST: Final = 200
_PAUSE_SECONDS: Final = 0.2
_MOST_REMEMBERED: Final = 2_000
_HOUR: Final = 3600.0
"""So long an API server keeps an Event, unless it is told otherwise."""

_log = structlog.get_logger(__name__)


class Api(Protocol):
    """What of `api.server` is needed here."""

    async def create(self, place: Place, body: Mapping[str, Any], /) -> object:
        """Make an object in this collection."""


class Herald:
    """Tells what is left here for as long as it runs."""

    def __init__(
        self, api: Api, retrying: Retrying, clock: Clock, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._api = api
        self._retrying = retrying
        self._clock = clock
        self._sleep = sleep
        self._waiting: deque[Notice] = deque()
        self._has_news = asyncio.Event()
        self._told = _Lately(clock)
        self._complained = _Lately(clock)
        self.left_out = 0

    def leave(self, notice: Notice) -> None:
        """Have it told, unless it was within the hour; never waits."""
        what = f"{notice.subject.namespace}/{notice.name}"
        if self._told.knows(what):
            return
        if len(self._waiting) >= MOST:
            self.left_out += 1
            return
        self._told.note(what)
        self._waiting.append(notice)
        self._has_news.set()

    async def run(self) -> None:
        """Go on for ever; what waits when this is cancelled is left out."""
        try:
            while True:
                while self._waiting:
                    await self._tell(self._waiting.popleft())
                    await self._sleep(_PAUSE_SECONDS)
                self._has_news.clear()
                await self._has_news.wait()
        finally:
            self._waiting.clear()

    async def _tell(self, notice: Notice) -> None:
        namespace = notice.subject.namespace
        body = notice.manifest(self._clock.now())
        place = resources.EVENTS.at(namespace)
        try:
            await self._retrying(functools.partial(self._api.create, place, body))
        except errors.ConflictError:
            # It was told before, by whoever led then.
            return
        except errors.ApiError as refused:
            self.left_out += 1
            if not self._complained.knows(namespace):
                self._complained.note(namespace)
                _log.warning("event is not written", namespace=namespace, error=str(refused))


class _Lately:
    """What has been within the last hour, as far as there is room to remember it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: OrderedDict[str, float] = OrderedDict()

    def knows(self, what: str) -> bool:
        """Tell whether that has been."""
        at = self._at.get(what)
        return at is not None and self._clock.monotonic() < at + _HOUR

    def note(self, what: str) -> None:
        """Remember that it is now."""
        self._at.pop(what, None)
        self._at[what] = self._clock.monotonic()
        if len(self._at) > _MOST_REMEMBERED:
            self._at.popitem(last=False)

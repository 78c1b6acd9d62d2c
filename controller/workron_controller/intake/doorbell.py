"""Kopf watches the objects, and rings here. It runs in a thread and a loop of its own, supervised.

At its end Kopf cancels all that runs in its loop, and it ends for good at an error of a watch that
it does not know; so it is begun again, and shares its loop with nobody. It writes nothing: there
are handlers of raw events only.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
from typing import TYPE_CHECKING, Any, Final

import kopf
import structlog

from workron.core.plan import Kind
from workron_controller import resources
from workron_controller.backoff import Backoff
from workron_controller.intake.memory import NoMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from workron.core.ports import Clock, Rng
    from workron_controller.api.access import Access
    from workron_controller.intake.hearing import Ear

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_JOIN_SECONDS: Final = 10.0
_CHUNK: Final = 500
_NOBODY: Final[Any] = "workron-controller"
"""Kopf has no peers here; by itself it asks for the user's name, and in a pod there is none."""
_LOGIN_SECONDS: Final = 30.0

_log = structlog.get_logger(__name__)
# It hears no signals where it runs, and says so at each start; who runs it hears them.
logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


class Doorbell:
    """Has an ear hear of all objects of some namespaces, or of all."""

    def __init__(
        self, ear: Ear, access: Access, namespaces: Collection[str], clock: Clock, rng: Rng
    ) -> None:
        self._ear = ear
        self._access = access
        self._namespaces = namespaces
        self._clock = clock
        self._rng = rng
        self._is_over = threading.Event()
        self._stops: dict[str | None, Callable[[], object]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.restarts = 0

    async def run(self) -> None:
        """Go on until it is cancelled."""
        self._loop = loop = asyncio.get_running_loop()
        # One that is forbidden a namespace ends; the others go on.
        places: list[str | None] = [*self._namespaces] or [None]
        threads = [
            threading.Thread(target=self._supervise, args=(loop, place), daemon=True)
            for place in places
        ]
        for thread in threads:
            thread.start()
        try:
            await loop.create_future()
        finally:
            self._is_over.set()
            for stop in self._stops.values():
                # Its loop may be over, and another one not begun.
                with contextlib.suppress(RuntimeError):
                    stop()
            for thread in threads:
                await asyncio.to_thread(thread.join, _JOIN_SECONDS)

    def _supervise(self, loop: asyncio.AbstractEventLoop, place: str | None) -> None:
        pauses = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        while not self._is_over.is_set():
            began = self._clock.monotonic()
            try:
                asyncio.run(self._watch(loop, place))
            except Exception as trouble:  # noqa: BLE001 - whatever it is, it is begun again
                _log.warning("watch ended", namespace=place, error=repr(trouble))
            # Until it watches again, and in the gap before that, only a list tells of anything.
            loop.call_soon_threadsafe(self._ear.inbox.has_overflown.set)
            if self._clock.monotonic() - began >= _LONGEST_PAUSE:
                # It did its work: what ended it is another matter than what may have been before.
                pauses.reset()
            if self._is_over.wait(pauses.more() * (0.5 + self._rng.random())):
                return
            self.restarts += 1

    async def _watch(self, loop: asyncio.AbstractEventLoop, place: str | None) -> None:
        # A flag of threads is waited for in a thread, which outlives what Kopf dies of.
        stop = asyncio.Event()
        self._stops[place] = functools.partial(
            asyncio.get_running_loop().call_soon_threadsafe, stop.set
        )
        if self._is_over.is_set():
            return
        await kopf.operator(
            registry=self._registry(loop),
            settings=_settings(),
            identity=_NOBODY,
            standalone=True,
            clusterwide=place is None,
            namespaces=[] if place is None else [place],
            stop_flag=stop,
        )

    def _registry(self, loop: asyncio.AbstractEventLoop) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._log_in)
        for kind in (Kind.JOB, Kind.WORKFLOW):
            named = resources.BY_KIND[kind]
            kopf.on.event(named.group, named.version, named.plural, registry=registry)(
                self._handler(kind, loop)
            )
        return registry

    def _log_in(self, **_: Any) -> kopf.ConnectionInfo:
        """Give the way in as it is now; Kopf asks again when it is refused."""
        assert self._loop is not None
        # One access serves one loop, and Kopf asks from a thread of its own.
        asked = asyncio.run_coroutine_threadsafe(self._access.anew(), self._loop)
        return asked.result(_LOGIN_SECONDS).for_kopf

    def _handler(self, kind: Kind, loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
        async def ring(event: Mapping[str, Any], **_: Any) -> None:
            hear = self._ear.hear_gone if event["type"] == "DELETED" else self._ear.hear
            loop.call_soon_threadsafe(hear, kind, event["object"])

        return ring


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.watching.chunk_size = _CHUNK
    settings.watching.server_timeout = 600
    settings.networking.request_timeout = 30
    settings.queueing.idle_timeout = 0.5
    settings.persistence.diffbase_storage = NoMemory()
    settings.persistence.finalizer = f"{resources.GROUP}/unused"
    return settings

"""The informer: watches Jobs and Workflows with Kopf, and hands every event to the object handler.

Kopf cancels everything in its event loop when it ends, and ends for good on an error of a watch
that it does not know. So each namespace has a Kopf operator in a thread with its own event loop,
and the informer restarts it with backoff. The operators write nothing to the cluster: they have
handlers of raw events only, and no finalizers, annotations or peering.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import kopf
import structlog
from prometheus_client import Counter

from workron.core.clock import Clock, Rng
from workron.core.plan import Kind
from workron.retry import RetryBackoff
from workron_controller.jobs.object_handler import ObjectHandler
from workron_controller.kube import resources
from workron_controller.kube.auth import ApiAccess

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_JOIN_SECONDS: Final = 10.0
_STOP_SECONDS: Final = 2.0
"""How often the tasks of Kopf that have not stopped are cancelled again."""
_PAGE_SIZE: Final = 500
_IDENTITY: Final[Any] = "workron-controller"
"""Peering is off, but Kopf would look up the name of the user, and a pod has none."""
_LOGIN_SECONDS: Final = 30.0

_log = structlog.get_logger(__name__)
# Kopf warns at each start that it cannot handle signals in this thread; the main thread does.
logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


class Informer:
    """Watches some namespaces, or the whole cluster if none is named."""

    def __init__(
        self,
        handler: ObjectHandler,
        access: ApiAccess,
        namespaces: Collection[str],
        clock: Clock,
        rng: Rng,
        stop_seconds: float = _STOP_SECONDS,
    ) -> None:
        self._handler = handler
        self._access = access
        self._namespaces = namespaces
        self._clock = clock
        self._stop_seconds = stop_seconds
        self._backoff = RetryBackoff(_FIRST_PAUSE, _LONGEST_PAUSE, jitter=0.5, rng=rng)
        self._is_stopping = threading.Event()
        self._stops: dict[str | None, Callable[[], object]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.restarts = Counter(
            "workron_controller_watch_restarts", "Restarts of watches.", registry=None
        )

    async def run(self) -> None:
        """Watch until it is cancelled."""
        self._loop = loop = asyncio.get_running_loop()
        # Each namespace has its own operator: one that is forbidden does not end the others.
        namespaces: list[str | None] = [*self._namespaces] or [None]
        threads = [
            threading.Thread(target=self._supervise, args=(loop, namespace), daemon=True)
            for namespace in namespaces
        ]
        for thread in threads:
            thread.start()
        try:
            await loop.create_future()
        finally:
            self._is_stopping.set()
            for stop in self._stops.values():
                # The operator's loop may be closed and the next one not started.
                with contextlib.suppress(RuntimeError):
                    stop()
            for thread in threads:
                await asyncio.to_thread(thread.join, _JOIN_SECONDS)

    def _supervise(self, loop: asyncio.AbstractEventLoop, namespace: str | None) -> None:
        failures = 0
        while not self._is_stopping.is_set():
            started_at = self._clock.monotonic()
            try:
                asyncio.run(self._watch(loop, namespace))
            except Exception as error:  # noqa: BLE001 - the watch is restarted after any error
                _log.warning("watch ended", namespace=namespace, error=repr(error))
            # Only a list shows what happens until the next watch starts.
            loop.call_soon_threadsafe(self._handler.workqueue.has_overflowed.set)
            lasted = self._clock.monotonic() - started_at
            # After a watch that worked for a while, the failures before it do not count.
            failures = 1 if lasted >= _LONGEST_PAUSE else failures + 1
            if self._is_stopping.wait(self._backoff.pause(failures)):
                return
            self.restarts.inc()

    async def _watch(self, loop: asyncio.AbstractEventLoop, namespace: str | None) -> None:
        # An asyncio event, as Kopf would wait for a thread's event in a thread that may outlive it.
        stop = asyncio.Event()
        self._stops[namespace] = functools.partial(
            asyncio.get_running_loop().call_soon_threadsafe, stop.set
        )
        if self._is_stopping.is_set():
            return
        tasks = await kopf.spawn_tasks(
            registry=self._registry(loop),
            settings=_settings(),
            identity=_IDENTITY,
            standalone=True,
            clusterwide=namespace is None,
            namespaces=[] if namespace is None else [namespace],
            stop_flag=stop,
        )
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        this = asyncio.current_task()
        assert this is not None
        stopping = asyncio.create_task(kopf.run_tasks(tasks, ignored=[this]))
        while not (await asyncio.wait([stopping], timeout=self._stop_seconds))[0]:
            # A watch of Kopf can ignore its cancellation, in a race with a new connection, and then
            # waits forever for new credentials. The root tasks are not cancelled again: they wait
            # for other tasks, and one of them closes the connections at the end.
            for task in asyncio.all_tasks().difference([this, stopping], tasks):
                task.cancel()
        stopping.result()

    def _registry(self, loop: asyncio.AbstractEventLoop) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._log_in)
        for kind in (Kind.JOB, Kind.WORKFLOW):
            resource = resources.BY_KIND[kind]
            kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)(
                self._on_event(kind, loop)
            )
        return registry

    async def _log_in(self, **_: Any) -> kopf.ConnectionInfo:
        """Return fresh credentials: Kopf asks for them again when the API server refuses them."""
        assert self._loop is not None
        # The access belongs to the main loop, and the operator has a loop of its own.
        endpoint = asyncio.run_coroutine_threadsafe(self._access.refresh(), self._loop)
        async with asyncio.timeout(_LOGIN_SECONDS):
            return (await asyncio.wrap_future(endpoint)).kopf_connection

    def _on_event(self, kind: Kind, loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
        async def on_event(event: Mapping[str, Any], **_: Any) -> None:
            is_deleted = event["type"] == "DELETED"
            handle = functools.partial(self._handler.handle, is_deleted=is_deleted)
            loop.call_soon_threadsafe(handle, kind, event["object"])

        return on_event


class NoDiffStorage(kopf.DiffBaseStorage):
    """Stores nothing in the annotations of objects: no handler compares versions."""

    def fetch(self, **_: Any) -> None:
        """Return no stored version."""

    def build(self, **_: Any) -> Any:
        """Return nothing to store."""

    def store(self, **_: Any) -> None:
        """Store nothing."""


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.watching.chunk_size = _PAGE_SIZE
    settings.watching.server_timeout = 600
    settings.networking.request_timeout = 30
    settings.queueing.idle_timeout = 0.5
    settings.persistence.diffbase_storage = NoDiffStorage()
    settings.persistence.finalizer = f"{resources.GROUP}/unused"
    return settings

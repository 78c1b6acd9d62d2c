"""The endpoint of `--health HOST:PORT`: the pages that it serves for probes and Prometheus.

`/healthz` fails when the event loop is blocked or the process has failed for good, so a restart
helps. `/readyz` also fails while the process cannot work, as during an outage of the store.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client import CollectorRegistry

    from workron.cli.options import Address
    from workron.core.clock import Clock
    from workron.telemetry.health import EventLoopWatchdog, HttpPage, Pages


_log = structlog.get_logger(__name__)
_REFUSALS: Final = {
    errno.EADDRINUSE: "the port is in use; choose another one",
    errno.EACCES: "permission denied; choose a port from 1024 on",
    errno.EADDRNOTAVAIL: "not an address of this machine",
}


class HealthSubject(Protocol):
    """A process whose health is served; called on other threads."""

    registry: CollectorRegistry

    @property
    def why_hopeless(self) -> str | None:
        """Why only a restart helps; None otherwise."""

    @property
    def why_not_ready(self) -> Callable[[], str | None]:
        """Returns why it cannot work at present; None if it can."""


@contextlib.contextmanager
def served(
    where: Address | None, subject_of: Callable[[], HealthSubject], clock: Clock
) -> Iterator[int | None]:
    """Serve the pages inside the block, which runs on the watched event loop; yields the port.

    Without an address it serves nothing, and does not load the metrics library.
    """
    if where is None:
        yield None
        return
    from workron.telemetry.health import EventLoopWatchdog, HealthServer

    with EventLoopWatchdog(clock) as watchdog:
        try:
            server = HealthServer(where, pages(subject_of(), watchdog), clock)
        except (OSError, UnicodeError) as error:
            raise errors.InputError(f"--health: {where}: {_why(error)}") from error
        _log.info("health endpoint started", address=str(where._replace(port=server.port)))
        try:
            yield server.port
        finally:
            server.stop()


def pages(subject: HealthSubject, watchdog: EventLoopWatchdog) -> Pages:
    """Return the pages of one process."""
    from prometheus_client import exposition

    from workron.telemetry.health import HttpPage

    def page(why_not: str | None) -> HttpPage:
        if why_not is None:
            return HttpPage(b"ok\n")
        return HttpPage(f"{why_not}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)

    def why_not_alive() -> str | None:
        return watchdog.why_blocked() or subject.why_hopeless

    def metrics() -> HttpPage:
        body = exposition.generate_latest(subject.registry)
        return HttpPage(body, content_type=exposition.CONTENT_TYPE_LATEST)

    return {
        "/healthz": lambda: page(why_not_alive()),
        "/readyz": lambda: page(why_not_alive() or subject.why_not_ready()),
        "/metrics": metrics,
    }


def _why(error: OSError | UnicodeError) -> str:
    if isinstance(error, UnicodeError | socket.gaierror):
        return "unknown host"
    return _REFUSALS.get(error.errno or 0) or os.strerror(error.errno or 0)

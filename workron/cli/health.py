"""The option `--health HOST:PORT`, and the pages that it serves for probes and Prometheus.

`/healthz` fails when the event loop is blocked or the process has failed for good, so a restart
helps. `/readyz` also fails while the process cannot work, as during an outage of the store.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import structlog

from workron.core import errors
from workron.scheduling import maintainer
from workron_worker.metrics import WorkerMetrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from prometheus_client import CollectorRegistry

    from workron.core.clock import Clock
    from workron.telemetry.health import EventLoopWatchdog, HttpPage, Pages


_log = structlog.get_logger(__name__)
_LAST_PORT: Final = 2**16 - 1
_FORMAT: Final = "use HOST:PORT, such as 127.0.0.1:9464, or 0.0.0.0:9464 for all interfaces"
_REFUSALS: Final = {
    errno.EADDRINUSE: "the port is in use; choose another one",
    errno.EACCES: "permission denied; choose a port from 1024 on",
    errno.EADDRNOTAVAIL: "not an address of this machine",
}


class Address(NamedTuple):
    """Host and port to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        """Format as the option expects it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str) -> Address:
    """Parse the option; InputError says what is wrong with it."""
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if is_bracketed:
        host = host[1:-1]
    if not (colon and host):
        raise errors.InputError(f"--health: {text!r} is not a host and port; {_FORMAT}")
    if ":" in host and not is_bracketed:
        raise errors.InputError(f"--health: {text!r}: write [{host}]:{port} for an IPv6 address")
    if not (port.isascii() and port.isdecimal() and int(port) <= _LAST_PORT):
        raise errors.InputError(
            f"--health: {port!r} is not a port from 0 to {_LAST_PORT}; {_FORMAT}"
        )
    return Address(host, int(port))


def given(text: str | None) -> Address | None:
    """Parse the option, if it was given."""
    return None if text is None else address(text)


class Subject(Protocol):
    """A process whose health is served; called on other threads."""

    registry: CollectorRegistry

    @property
    def why_hopeless(self) -> str | None:
        """Why only a restart helps; None otherwise."""

    def why_not_ready(self) -> str | None:
        """Return why it cannot work at present; None if it can."""


@contextlib.asynccontextmanager
async def of_worker(
    where: Address | None, slots: int, clock: Clock
) -> AsyncIterator[WorkerMetrics]:
    """Serve the health of a worker inside the block, and yield its metrics; None serves nothing."""
    metrics = WorkerMetrics()
    if where is None:
        yield metrics
        return
    from workron_worker.metrics_exporter import WorkerExporter

    with served(where, WorkerExporter(metrics, slots, clock), clock):
        yield metrics


@contextlib.asynccontextmanager
async def of_maintainer(
    where: Address | None, clock: Clock
) -> AsyncIterator[maintainer.MaintainerMeter]:
    """Serve the health of a maintainer inside the block, and yield its meter."""
    if where is None:
        yield maintainer.NO_METER
        return
    from workron.cli.maintainer_metrics import MaintainerMetrics

    metrics = MaintainerMetrics(clock)
    with served(where, metrics, clock):
        yield metrics


@contextlib.contextmanager
def served(where: Address, subject: Subject, clock: Clock) -> Iterator[int]:
    """Serve the pages inside the block, which runs on the watched event loop; yields the port."""
    from workron.telemetry.health import EventLoopWatchdog, HealthServer

    with EventLoopWatchdog(clock) as watchdog:
        try:
            server = HealthServer(where, pages(subject, watchdog), clock)
        except (OSError, UnicodeError) as error:
            raise errors.InputError(f"--health: {where}: {_why(error)}") from error
        _log.info("health endpoint started", address=str(where._replace(port=server.port)))
        try:
            yield server.port
        finally:
            server.stop()


def pages(subject: Subject, watchdog: EventLoopWatchdog) -> Pages:
    """Return the pages of one process."""
    from prometheus_client import exposition

    from workron.telemetry.health import HttpPage

    def alive() -> str | None:
        return watchdog.why_blocked() or subject.why_hopeless

    def metrics() -> HttpPage:
        body = exposition.generate_latest(subject.registry)
        return HttpPage(body, content_type=exposition.CONTENT_TYPE_LATEST)

    return {
        "/healthz": lambda: _verdict(alive()),
        "/readyz": lambda: _verdict(alive() or subject.why_not_ready()),
        "/metrics": metrics,
    }


def _verdict(why_not: str | None) -> HttpPage:
    from workron.telemetry.health import HttpPage

    if why_not is None:
        return HttpPage(b"ok\n")
    return HttpPage(f"{why_not}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)


def _why(error: OSError | UnicodeError) -> str:
    if isinstance(error, UnicodeError | socket.gaierror):
        return "unknown host"
    return _REFUSALS.get(error.errno or 0) or os.strerror(error.errno or 0)

"""Health over HTTP, for probes and scrapes: what `--health HOST:PORT` of a command does.

Called by the commands that take the option. What the three paths mean stands in
docs/reference/metrics.md.
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
    from workron.telemetry.http_server import EventLoopWatchdog, HttpPage, Pages


_log = structlog.get_logger(__name__)
_LAST_PORT: Final = 2**16 - 1
_WANTED: Final = "it is HOST:PORT, such as 127.0.0.1:9464, or 0.0.0.0:9464 for every interface"
_REFUSALS: Final = {
    errno.EADDRINUSE: "another program listens there already; choose another port",
    errno.EACCES: "this user may not listen on that port; choose one from 1024 on",
    errno.EADDRNOTAVAIL: "that is no address of this machine",
}


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        """Write it as it is given."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str) -> Address:
    """Read the option's value; InputError says what is wrong with it."""
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if is_bracketed:
        host = host[1:-1]
    if not (colon and host):
        raise errors.InputError(f"--health: {text!r} names no host and port; {_WANTED}")
    if ":" in host and not is_bracketed:
        raise errors.InputError(f"--health: {text!r}: write [{host}]:{port} for an IPv6 address")
    if not (port.isascii() and port.isdecimal() and int(port) <= _LAST_PORT):
        raise errors.InputError(f"--health: {port!r} is no port from 0 to {_LAST_PORT}; {_WANTED}")
    return Address(host, int(port))


def given(text: str | None) -> Address | None:
    """Read the option, if there is one."""
    return None if text is None else address(text)


class Subject(Protocol):
    """Whose health is served; asked on another thread than its own."""

    registry: CollectorRegistry

    @property
    def why_hopeless(self) -> str | None:
        """Say why only a new process will do."""

    def why_not_ready(self) -> str | None:
        """Say why it cannot work at present."""


@contextlib.asynccontextmanager
async def of_worker(
    where: Address | None, slots: int, clock: Clock
) -> AsyncIterator[WorkerMetrics]:
    """Tell a worker's health meanwhile, as its agent tells it to the meter; None: nowhere."""
    metrics = WorkerMetrics()
    if where is None:
        yield metrics
        return
    from workron_worker.metrics_exporter import WorkerExporter

    with told(where, WorkerExporter(metrics, slots, clock), clock):
        yield metrics


@contextlib.asynccontextmanager
async def of_maintainer(
    where: Address | None, clock: Clock
) -> AsyncIterator[maintainer.MaintainerMeter]:
    """Tell a maintainer's health meanwhile, as it tells it to the meter; None: nowhere."""
    if where is None:
        yield maintainer.NO_METER
        return
    from workron.cli.maintainer_metrics import MaintainerMetrics

    metrics = MaintainerMetrics(clock)
    with told(where, metrics, clock):
        yield metrics


@contextlib.contextmanager
def told(where: Address, subject: Subject, clock: Clock) -> Iterator[int]:
    """Answer probes meanwhile, and give the port; on the loop that is to be seen turning."""
    from workron.telemetry.http_server import EventLoopWatchdog, HttpServer

    with EventLoopWatchdog(clock) as turning:
        try:
            server = HttpServer(where, pages(subject, turning), clock)
        except (OSError, UnicodeError) as error:
            raise errors.InputError(f"--health: {where}: {_why(error)}") from error
        _log.info("health is served", address=str(where._replace(port=server.port)))
        try:
            yield server.port
        finally:
            server.stop()


def pages(subject: Subject, turning: EventLoopWatchdog) -> Pages:
    """Say what is found at each path."""
    from prometheus_client import exposition

    from workron.telemetry.http_server import HttpPage

    def alive() -> str | None:
        return turning.why_stuck() or subject.why_hopeless

    def metrics() -> HttpPage:
        body = exposition.generate_latest(subject.registry)
        return HttpPage(body, type=exposition.CONTENT_TYPE_LATEST)

    return {
        b"/healthz": lambda: _verdict(alive()),
        b"/readyz": lambda: _verdict(alive() or subject.why_not_ready()),
        b"/metrics": metrics,
    }


def _verdict(why_not: str | None) -> HttpPage:
    from workron.telemetry.http_server import HttpPage

    if why_not is None:
        return HttpPage(b"ok\n")
    return HttpPage(f"{why_not}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)


def _why(error: OSError | UnicodeError) -> str:
    if isinstance(error, UnicodeError | socket.gaierror):
        return "no such host is known here"
    return _REFUSALS.get(error.errno or 0) or os.strerror(error.errno or 0)

"""`--health`: the pages of a worker and a maintainer, and invalid addresses."""

import asyncio
import contextlib
import random
import re
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.http_client import request, samples
from tests.scheduling.conftest import ManualClock
from workron.cli import health, options
from workron.cli.maintainer_exporter import MaintainerExporter
from workron.cli.options import Address
from workron.core import errors
from workron.scheduling.maintainer import Duty, Maintainer, MaintainerMetrics
from workron.store import connect
from workron.telemetry.health import EventLoopWatchdog
from workron_worker.metrics import WorkerMetrics
from workron_worker.metrics_exporter import WorkerExporter

HERE = Address("127.0.0.1", 0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def _page_reader(subject: Any) -> Callable[[str], tuple[int, str]]:
    """Return a function that reads a page without a server."""
    pages = health.pages(subject, EventLoopWatchdog(ManualClock()))

    def get(path: str) -> tuple[int, str]:
        page = pages[path]()
        return page.status, page.body.decode()

    return get


@contextlib.asynccontextmanager
async def _page_reader_over_http(subject: Any, clock: ManualClock) -> Any:
    """Yield a function that requests a page on a thread, so that the event loop is free."""
    with health.served(HERE, lambda: subject, clock) as port:
        assert port is not None
        yield lambda path: asyncio.to_thread(request, port, path)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9464", Address("127.0.0.1", 9464)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:65535", Address("::1", 65535)),
    ],
)
def test_address_is_parsed_into_host_and_port(text: str, address: Address) -> None:
    assert options.address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a host and port; use HOST:PORT, such as 127.0.0.1:9464"),
        ("9464", "'9464' is not a host and port"),
        (":9464", "':9464' is not a host and port; .* or 0.0.0.0:9464 for all interfaces"),
        ("[]:1", "is not a host and port"),
        ("localhost:", "'' is not a port from 0 to 65535"),
        ("localhost:http", "'http' is not a port from 0 to 65535"),
        ("localhost:-1", "'-1' is not a port"),
        ("localhost:65536", "'65536' is not a port"),
        ("localhost:\u0661", "is not a port"),
        ("::1:80", r"'::1:80': write \[::1\]:80 for an IPv6 address"),
    ],
)
def test_address_is_refused_with_an_example_when_it_is_invalid(text: str, message: str) -> None:
    with pytest.raises(errors.InputError, match=f"^--health: .*{message}"):
        options.address(text)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


async def test_error_names_the_port_when_it_is_in_use(taken: int, clock: ManualClock) -> None:
    message = f"--health: 127.0.0.1:{taken}: the port is in use"
    exporter = WorkerExporter(WorkerMetrics(), 1, clock)
    serving = health.served(Address("127.0.0.1", taken), lambda: exporter, clock)
    with pytest.raises(errors.InputError, match=re.escape(message)), serving:
        pass


@pytest.mark.parametrize(
    ("host", "message"),
    [("192.0.2.1", "not an address of this machine"), ("a..b", "unknown host")],
)
async def test_error_names_the_host_when_it_is_not_of_this_machine(
    host: str, message: str, clock: ManualClock
) -> None:
    exporter = MaintainerExporter(MaintainerMetrics(clock))
    serving = health.served(Address(host, 0), lambda: exporter, clock)
    with pytest.raises(errors.InputError, match=message), serving:
        pass


async def test_nothing_is_served_when_no_address_is_given(clock: ManualClock) -> None:
    threads = set(threading.enumerate())
    with health.served(None, lambda: pytest.fail("made"), clock) as port:
        assert port is None
        assert set(threading.enumerate()) <= threads


def test_worker_is_ready_from_its_registration_until_its_lease_expires(clock: ManualClock) -> None:
    metrics = WorkerMetrics()
    get = _page_reader(WorkerExporter(metrics, 4, clock))
    assert "is not registered yet" in get("/readyz")[1]
    metrics.session_began(10, clock.monotonic())
    assert get("/readyz") == (200, "ok\n")
    clock.advance(9)
    metrics.heartbeat_answered(clock.monotonic() - 1)
    clock.advance(8.9)
    assert get("/readyz") == (200, "ok\n")
    clock.advance(0.1)
    message = "the last answered heartbeat is 10.0 s old, and the lease is 10 s\n"
    assert get("/readyz") == (503, message)


def test_worker_stays_ready_when_an_older_heartbeat_is_answered_late(clock: ManualClock) -> None:
    metrics = WorkerMetrics()
    metrics.session_began(10, 0)
    clock.advance(9)
    metrics.heartbeat_answered(8)
    metrics.heartbeat_answered(2)
    clock.advance(5)
    assert _page_reader(WorkerExporter(metrics, 4, clock))("/readyz")[0] == 200


def test_worker_is_ready_again_when_it_has_a_new_session(clock: ManualClock) -> None:
    metrics = WorkerMetrics()
    get = _page_reader(WorkerExporter(metrics, 4, clock))
    metrics.session_began(10, clock.monotonic())
    metrics.session_lost()
    assert get("/readyz") == (
        503,
        "the store has reaped this worker's session; it registers again\n",
    )
    metrics.session_began(10, clock.monotonic())
    assert get("/readyz")[0] == 200


def test_worker_is_alive_and_not_ready_when_it_drains(clock: ManualClock) -> None:
    metrics = WorkerMetrics()
    metrics.session_began(10, clock.monotonic())
    metrics.is_draining = True
    get = _page_reader(WorkerExporter(metrics, 4, clock))
    assert get("/readyz") == (503, "this worker is draining: it claims nothing any more\n")
    assert get("/healthz") == (200, "ok\n")


def test_worker_is_alive_and_not_ready_when_the_store_is_unavailable(clock: ManualClock) -> None:
    metrics = WorkerMetrics()
    metrics.session_began(10, clock.monotonic())
    clock.advance(3600)
    assert _page_reader(WorkerExporter(metrics, 4, clock))("/readyz")[0] == 503
    assert _page_reader(WorkerExporter(metrics, 4, clock))("/healthz")[0] == 200


@pytest.mark.parametrize(
    ("error", "message"),
    [(errors.SchemaError("too new"), "too new"), (TimeoutError(), "TimeoutError")],
)
def test_worker_is_not_alive_when_it_has_failed(
    clock: ManualClock, error: Exception, message: str
) -> None:
    metrics = WorkerMetrics()
    metrics.session_began(10, clock.monotonic())
    metrics.agent_failed(error)
    for path in ("/healthz", "/readyz"):
        assert _page_reader(WorkerExporter(metrics, 4, clock))(path) == (
            503,
            f"this worker has failed: {message}\n",
        )


def test_health_check_fails_when_the_event_loop_is_blocked(clock: ManualClock) -> None:
    metrics = WorkerMetrics()
    metrics.session_began(1e6, clock.monotonic())
    at: list[int] = []
    begun, release = threading.Event(), threading.Event()

    async def serve() -> None:
        with health.served(HERE, lambda: WorkerExporter(metrics, 4, clock), clock) as port:
            assert port is not None
            at.append(port)
            begun.set()
            # This blocks the event loop.
            release.wait()

    stuck = threading.Thread(target=asyncio.run, args=(serve(),))
    stuck.start()
    try:
        begun.wait()
        assert request(at[0], "/healthz").status == 200
        clock.advance(10.5)
        for path in ("/healthz", "/readyz"):
            answer = request(at[0], path)
            assert answer.status == 503
            assert answer.body == "the event loop has been blocked for 10.5 s\n"
        assert "workron_worker_slots 4.0" in request(at[0], "/metrics").body
    finally:
        release.set()
        stuck.join()


async def test_loop_is_not_blocked_when_it_turns(clock: ManualClock) -> None:
    with EventLoopWatchdog(clock, check_seconds=0.0) as watchdog:
        clock.advance(3600)
        assert watchdog.why_blocked()
        while watchdog.why_blocked():
            await asyncio.sleep(0)


async def test_metrics_are_in_the_format_of_prometheus(clock: ManualClock) -> None:
    async with _page_reader_over_http(WorkerExporter(WorkerMetrics(), 4, clock), clock) as get:
        answer = await get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    seen = samples(answer.body)
    assert seen["workron_worker_slots"] == 4
    assert {name for name in seen if not name.startswith("workron_worker_")} == set()


def test_maintainer_is_ready_while_it_completes_rounds(clock: ManualClock) -> None:
    metrics = MaintainerMetrics(clock)
    get = _page_reader(MaintainerExporter(metrics))
    assert "no round is completed yet" in get("/readyz")[1]
    metrics.round_completed(is_elected=False)
    assert get("/readyz") == (200, "ok\n")
    clock.advance(12.5)
    message = "the last completed round is 12.5 s ago: the store does not answer\n"
    assert get("/readyz") == (503, message)
    assert get("/healthz")[0] == 200
    metrics.why_hopeless = "this maintainer has failed: too new"
    assert get("/healthz") == (503, "this maintainer has failed: too new\n")


def test_maintainer_exports_its_election_and_its_counts(clock: ManualClock) -> None:
    metrics = MaintainerMetrics(clock)
    metrics.round_completed(is_elected=True)
    metrics.count(Duty.PROPAGATE, 3)
    metrics.reaped_workers += 1
    metrics.missed_jobs += 2
    clock.advance(2)
    seen = samples(_page_reader(MaintainerExporter(metrics))("/metrics")[1])
    assert seen["workron_maintainer_elected"] == 1
    assert seen["workron_maintainer_round_age_seconds"] == 2
    assert seen["workron_maintainer_moved_total propagate"] == 3
    assert seen["workron_maintainer_moved_total expire"] == 0
    assert seen["workron_maintainer_reaped_workers_total"] == 1
    assert seen["workron_maintainer_missed_edges_total"] == 2


def test_maintainer_is_not_elected_when_its_lease_has_expired(clock: ManualClock) -> None:
    metrics = MaintainerMetrics(clock)
    metrics.round_completed(is_elected=True)
    clock.advance(10)
    seen = samples(_page_reader(MaintainerExporter(metrics))("/metrics")[1])
    assert seen["workron_maintainer_elected"] == 0


async def test_running_maintainer_is_visible_over_http(clock: ManualClock) -> None:
    store = await connect.connect("memory:", clock=clock, rng=random.Random())
    metrics = MaintainerMetrics(clock)
    try:
        await Maintainer(store, clock, uuid.uuid4(), metrics).step()
        async with _page_reader_over_http(MaintainerExporter(metrics), clock) as get:
            assert (await get("/readyz")).status == 200
            assert samples((await get("/metrics")).body)["workron_maintainer_elected"] == 1
    finally:
        await store.close()

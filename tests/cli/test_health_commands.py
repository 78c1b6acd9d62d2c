"""`--health` of `workron worker` and `workron maintain` as processes."""

import signal
import socket
import subprocess
import sys

import pytest

from tests.cli.conftest import Call, Start, Write, read_log_until
from tests.cli.http_client import request, samples

_HEALTH_OPTIONS = ["--health", "127.0.0.1:0", "--log", "json"]


def _port(process: subprocess.Popen[str]) -> int:
    return int(read_log_until(process, "health endpoint started")["address"].rpartition(":")[2])


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 0


def test_worker_serves_health_and_metrics(call: Call, start: Start, write: Write, url: str) -> None:
    call("submit", write("hello", command="exit 3", more="maxAttempts: 1"), "--store", url)
    worker = start("worker", "--store", url, "--slots", 3, *_HEALTH_OPTIONS)
    port = _port(worker)
    assert request(port, "/healthz").status == 200
    read_log_until(worker, "worker registered")
    assert request(port, "/readyz").body == "ok\n"
    read_log_until(worker, "attempt ended")
    # The report is stored a moment later.
    while not (seen := samples(request(port, "/metrics").body)).get(
        "workron_worker_attempts_total Failed ExitCode"
    ):
        pass
    assert seen["workron_worker_slots"] == 3
    assert seen["workron_worker_claims_total"] == 1
    assert seen["workron_worker_spawn_latency_seconds_count"] == 1
    _end(worker)
    with pytest.raises(ConnectionRefusedError):
        request(port, "/healthz")


def test_draining_worker_is_alive_and_not_ready(
    call: Call, start: Start, write: Write, url: str
) -> None:
    call("submit", write("hello", command="exec sleep 1000"), "--store", url)
    worker = start("worker", "--store", url, "--heartbeat", "100ms", *_HEALTH_OPTIONS)
    port = _port(worker)
    read_log_until(worker, "attempt running")
    worker.send_signal(signal.SIGTERM)
    read_log_until(worker, "worker draining")
    while (answer := request(port, "/readyz")).status == 200:
        pass
    assert answer.body == "this worker is draining: it claims nothing any more\n"
    assert request(port, "/healthz").status == 200
    _end(worker)


def test_maintainer_serves_health_and_metrics(
    call: Call, start: Start, write: Write, url: str
) -> None:
    call("submit", write("hello"), "--store", url)
    maintainer = start("maintain", "--store", url, *_HEALTH_OPTIONS)
    port = _port(maintainer)
    while request(port, "/readyz").status != 200:
        pass
    assert samples(request(port, "/metrics").body)["workron_maintainer_elected"] == 1
    _end(maintainer)


def test_worker_does_not_load_unneeded_libraries_when_health_is_off(
    call: Call, write: Write, url: str
) -> None:
    call("submit", write("hello"), "--store", url)
    program = """
import sys
from workron.cli import main
try:
    main()
finally:
    print(*sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", program, "worker", "--store", url, "--idle-exit", "1ms"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "workron_worker.agent" in result.stdout.split()
    assert {"prometheus_client", "workron.telemetry.health"} & set(result.stdout.split()) == set()
    # The libraries for manifests and terminals would take much of the memory of an idle worker.
    models = {"workron.core.model.base", "pydantic", "pydantic_core"}
    heavy = models | {"yaml", "rich", "kopf", "kubernetes"}
    assert heavy & set(result.stdout.split()) == set()


@pytest.mark.parametrize("command", ["worker", "maintain"])
def test_health_address_is_refused_when_it_is_invalid(call: Call, url: str, command: str) -> None:
    result = call(command, "--store", url, "--health", "9464")
    assert (result.code, result.out) == (2, "")
    assert "--health: '9464' is not a host and port; use HOST:PORT" in result.err


@pytest.mark.parametrize("command", ["worker", "maintain"])
def test_health_address_is_refused_when_its_port_is_in_use(
    call: Call, url: str, command: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = call(command, "--store", url, "--health", f"127.0.0.1:{port}")
    assert result.code == 2
    assert f"--health: 127.0.0.1:{port}: the port is in use" in result.err

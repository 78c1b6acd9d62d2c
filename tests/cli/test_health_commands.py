"""`--health` of `workron worker` and `workron maintain`, as processes of their own."""

import json
import pathlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.cli.conftest import Call
from tests.cli.http_client import ask, samples

Write = Callable[..., pathlib.Path]
Start = Callable[..., subprocess.Popen[str]]

_ANYWHERE = ["--health", "127.0.0.1:0", "--log", "json"]


def _hear(process: subprocess.Popen[str], event: str) -> dict[str, str]:
    """Read the log of a process up to this event."""
    assert process.stdout is not None
    for line in process.stdout:
        said: dict[str, str] = json.loads(line)
        if said["event"] == event:
            return said
    raise AssertionError(f"the process ended without saying: {event}")


def _port(process: subprocess.Popen[str]) -> int:
    return int(_hear(process, "health endpoint started")["address"].rpartition(":")[2])


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 0


def test_worker_serves_health_and_metrics(call: Call, start: Start, write: Write, url: str) -> None:
    call("submit", write("hello", command="exit 3", more="maxAttempts: 1"), "--store", url)
    worker = start("worker", "--store", url, "--slots", 3, *_ANYWHERE)
    port = _port(worker)
    assert ask(port, "/healthz").status == 200
    _hear(worker, "worker registered")
    assert ask(port, "/readyz").body == "ok\n"
    _hear(worker, "attempt ended")
    # The store is told of it a moment later.
    while not (seen := samples(ask(port, "/metrics").body)).get(
        "workron_worker_attempts_total Failed ExitCode"
    ):
        pass
    assert seen["workron_worker_slots"] == 3
    assert seen["workron_worker_claims_total"] == 1
    assert seen["workron_worker_spawn_latency_seconds_count"] == 1
    _end(worker)
    with pytest.raises(ConnectionRefusedError):
        ask(port, "/healthz")


def test_draining_worker_is_alive_and_not_ready(
    call: Call, start: Start, write: Write, url: str
) -> None:
    call("submit", write("hello", command="exec sleep 1000"), "--store", url)
    worker = start("worker", "--store", url, *_ANYWHERE)
    port = _port(worker)
    _hear(worker, "attempt running")
    worker.send_signal(signal.SIGTERM)
    _hear(worker, "worker draining")
    while (answer := ask(port, "/readyz")).status == 200:
        pass
    assert answer.body == "this worker is draining: it claims nothing any more\n"
    assert ask(port, "/healthz").status == 200
    _end(worker)


def test_maintainer_serves_health_and_metrics(
    call: Call, start: Start, write: Write, url: str
) -> None:
    call("submit", write("hello"), "--store", url)
    maintainer = start("maintain", "--store", url, *_ANYWHERE)
    port = _port(maintainer)
    while ask(port, "/readyz").status != 200:
        pass
    assert samples(ask(port, "/metrics").body)["workron_maintainer_elected"] == 1
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
    said = subprocess.run(
        [sys.executable, "-c", program, "worker", "--store", url, "--idle-exit", "1ms"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "workron_worker.agent" in said.stdout.split()
    assert {"prometheus_client", "workron.telemetry.health"} & set(said.stdout.split()) == set()
    # What manifests and people need is much of the memory that an idle worker could take.
    models = {"workron.core.model.base", "pydantic", "pydantic_core"}
    heavy = models | {"yaml", "rich", "kopf", "kubernetes"}
    assert heavy & set(said.stdout.split()) == set()


@pytest.mark.parametrize("command", ["worker", "maintain"])
def test_health_address_is_refused_when_it_is_invalid(call: Call, url: str, command: str) -> None:
    said = call(command, "--store", url, "--health", "9464")
    assert (said.code, said.out) == (2, "")
    assert "--health: '9464' is not a host and port; use HOST:PORT" in said.err


@pytest.mark.parametrize("command", ["worker", "maintain"])
def test_health_address_is_refused_when_its_port_is_in_use(
    call: Call, url: str, command: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = call(command, "--store", url, "--health", f"127.0.0.1:{port}")
    assert said.code == 2
    assert f"--health: 127.0.0.1:{port}: the port is in use" in said.err

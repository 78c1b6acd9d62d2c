"""`worker` and `maintain` stop in order on a signal, however early it arrives."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Start
from workron.cli.signals import SignalledService

_SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that accepts connections and sends no answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


@pytest.mark.parametrize("number", _SIGNALS)
@pytest.mark.parametrize(
    ("command", "token", "line"),
    [
        ("worker", "a-token", "worker stopping"),
        ("worker", "", "worker stopping"),
        ("maintain", "", "maintainer stopping"),
    ],
)
def test_command_stops_in_order_when_a_signal_arrives_while_the_store_is_opened(  # noqa: PLR0913, PLR0917
    start: Start,
    silent: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    token: str,
    line: str,
    number: signal.Signals,
) -> None:
    monkeypatch.setenv("WORKRON_TOKEN", token)
    process = start(command, "--store", f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/db")
    line_to_it, _ = silent.accept()
    with line_to_it:
        process.send_signal(number)
        result, _ = process.communicate(timeout=8)
    assert process.returncode == 0
    printed = json.loads(result.splitlines()[-1])
    assert (printed["event"], printed["signal"]) == (line, number.name)


_NO_NAMES = """
import socket, sys, time
from workron.cli import main

def ask(*_, **__):
    print("asked", flush=True)
    time.sleep(60)

socket.getaddrinfo = ask
sys.argv[:] = ["workron", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("command", ["worker", "maintain"])
def test_command_stops_when_the_name_server_does_not_answer(command: str) -> None:
    words = [sys.executable, "-c", _NO_NAMES, command, "--store", "postgresql://me@nowhere.test/db"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"asked\n"
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(timeout=8) == 0
        finally:
            process.kill()


@pytest.fixture
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_handlers")
@pytest.mark.parametrize("number", _SIGNALS)
def test_process_exits_with_0_when_a_signal_arrives_before_the_event_loop_runs(
    number: signal.Signals,
) -> None:
    SignalledService("it ends")
    with pytest.raises(SystemExit) as ended:
        os.kill(os.getpid(), number)
    assert ended.value.code == 0

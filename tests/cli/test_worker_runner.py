"""`workron worker --runner`: invalid options, and a worker with an external runner."""

import json
import pathlib
import signal
import subprocess
from typing import Any

import pytest

from tests.cli.conftest import Call, Start, Write
from tests.runner.fake_agent import COMMAND, environment
from workron.cli import worker
from workron.core import errors
from workron_worker.runner_connection import ChildRunners, SocketRunners

_SOCKET = pathlib.Path("/workron/socket")
_USUAL: dict[str, Any] = {"is_isolating": False, "uids": None, "processes": None, "slots": 4}


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        ({"is_isolating": True}, "--isolate"),
        ({"uids": "100000-100099"}, "--uids"),
        ({"processes": 5}, "--processes"),
    ],
)
def test_isolation_options_are_refused_when_the_runner_is_external(
    asked: dict[str, Any], option: str
) -> None:
    with pytest.raises(errors.InputError) as refused:
        worker.runners_from_options(_SOCKET, **_USUAL | asked)
    assert str(refused.value) == (
        f"{option} cannot be combined with --runner; pass it where that runner is started:"
        f" python3 -m workron_runner --socket /workron/socket {option}"
    )


@pytest.mark.parametrize("path", ["", "/", "/run/" + "d" * 103])
def test_runner_path_is_refused_when_no_socket_can_have_it(path: str) -> None:
    with pytest.raises(errors.InputError, match="is not a socket path of at most 107 bytes"):
        worker.runners_from_options(pathlib.Path(path), **_USUAL)


def test_runner_is_a_child_when_no_path_is_given() -> None:
    assert isinstance(worker.runners_from_options(_SOCKET, **_USUAL), SocketRunners)
    assert isinstance(worker.runners_from_options(None, **_USUAL), ChildRunners)


def test_commands_run_in_the_external_runner_when_a_path_is_given(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "socket"
    monkeypatch.setenv("WORKRON_RUNNER", str(path))
    call("submit", write("hello", command="echo $HOME"), "--store", url)
    (tmp_path / "runner").mkdir()
    with subprocess.Popen(
        [*COMMAND, "--socket", str(path)], env=environment(tmp_path / "runner")
    ) as runner:
        result = call("worker", "--store", url, "--max-jobs", 1)
        assert (result.code, runner.wait()) == (0, 0)
    assert call("output", "hello", "--store", url).out.startswith(f"{tmp_path}/runner/workron-")


def test_worker_exits_on_the_first_signal_when_it_waits_for_its_runner(
    call: Call, start: Start, url: str, tmp_path: pathlib.Path
) -> None:
    call("migrate", "--store", url)
    worker = start("worker", "--store", url, "--runner", tmp_path / "socket")
    assert worker.stdout is not None
    events = (json.loads(line)["event"] for line in worker.stdout)
    assert "waiting for runner" in events
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_worker_has_the_uid_of_its_pod_in_its_name(
    call: Call, start: Start, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("migrate", "--store", url)
    monkeypatch.setenv("WORKRON_POD_UID", "0B5FBD2E-0F39-4B8C-8BD4-0D1F6A0D2A51")
    worker = start("worker", "--store", url, "--idle-exit", "1ms")
    assert worker.stdout is not None
    result = [json.loads(line) for line in worker.stdout]
    [name] = [one["worker"] for one in result if one["event"] == "worker registered"]
    assert name == "0b5fbd2e-0f39-4b8c-8bd4-0d1f6a0d2a51"


def test_worker_is_refused_when_the_pod_uid_is_invalid(
    call: Call, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKRON_POD_UID", "worker-0")
    result = call("worker", "--store", url)
    assert result.code == 2
    assert "WORKRON_POD_UID is 'worker-0', which is not a pod uid" in result.err

"""The socket at which a runner waits for its agent, and the cleanup before it appears."""

import contextlib
import os
import pathlib
import select
import signal
import socket
import stat
import subprocess
import uuid
from collections.abc import Callable, Iterator
from typing import Self, cast

import pytest

from tests.runner.fake_agent import COMMAND, environment
from workron_runner import __main__, connection, event_loop, protocol, workspace
from workron_runner.connection import FrameConnection
from workron_runner.sandbox import TerminationSignals

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "socket"


@pytest.fixture
def start(tmp_path: pathlib.Path, path: pathlib.Path) -> Iterator[Start]:
    """Start a runner that listens at a path, by default at `path`."""
    children: list[subprocess.Popen[bytes]] = []

    def start(at: pathlib.Path = path) -> "subprocess.Popen[bytes]":
        command = [*COMMAND, "--socket", str(at)]
        children.append(
            subprocess.Popen(
                command, env=environment(tmp_path), cwd=tmp_path, stderr=subprocess.PIPE
            )
        )
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.wait()
        assert child.stderr is not None
        child.stderr.close()


def _wait_until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        select.select([], [], [], 0.005)


def _connect(path: pathlib.Path) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)

    def has_connected() -> bool:
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            stream.connect(str(path))
            return True
        return False

    _wait_until(has_connected)
    return stream


def _exchange_hello(stream: socket.socket, boot: uuid.UUID) -> tuple[int, int | None]:
    """Send Hello; return the kind of the answer and the descriptor that came with it."""
    link = FrameConnection(stream)
    link.send(protocol.encode(protocol.Hello(protocol.VERSION, boot.hex, event_loop.boottime())))
    select.select([link], [], [])
    descriptor = link.peek_descriptor()
    [one] = link.receive()
    return one.kind, descriptor


def _has_ended(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def test_path_is_removed_when_the_agent_connects(start: Start, path: pathlib.Path) -> None:
    child = start()
    with _connect(path) as stream:
        kind, _ = _exchange_hello(stream, uuid.uuid4())
        assert kind == protocol.FrameKind.HELLO
        assert not path.exists()
    assert child.wait() == 0
    assert child.stderr is not None
    assert child.stderr.read().decode().splitlines() == [
        f"workron_runner: waiting for an agent at {path}",
        "workron_runner: agent connected",
        "workron_runner: all commands have ended: the agent has disconnected",
    ]


def test_socket_is_open_to_user_and_group_only_when_it_appears(
    start: Start, path: pathlib.Path
) -> None:
    start()
    _wait_until(path.exists)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    _connect(path).close()


def test_client_is_skipped_when_it_disconnects_without_sending(
    start: Start, path: pathlib.Path
) -> None:
    start()
    _connect(path).close()
    with _connect(path) as stream:
        assert _exchange_hello(stream, uuid.uuid4())[0] == protocol.FrameKind.HELLO


class NeverTerminated:
    """Termination signals of which none ever arrives."""

    def __enter__(self) -> Self:
        self._descriptor = os.eventfd(0)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def is_requested(self) -> bool:
        return False


def test_client_is_disconnected_and_the_next_accepted_when_it_sends_nothing(
    path: pathlib.Path,
) -> None:
    with NeverTerminated() as termination:
        one = connection.RunnerListener(path, cast("TerminationSignals", termination), 0.01)
        with _connect(path) as silent, _connect(path) as sending:
            sending.send(b"x")
            stream = one.accept()
            assert stream is not None
            with stream:
                assert silent.recv(1) == b""
                stream.send(b"y")
                assert sending.recv(1) == b"y"


@pytest.mark.parametrize("has_client", [False, True], ids=["no client", "silent client"])
def test_runner_exits_without_leftovers_when_it_gets_sigterm_while_waiting(
    start: Start, path: pathlib.Path, tmp_path: pathlib.Path, *, has_client: bool
) -> None:
    child = start()
    _wait_until(path.exists)
    with _connect(path) if has_client else contextlib.nullcontext():
        child.terminate()
        assert child.wait() == 0
    assert list(tmp_path.iterdir()) == []


def test_socket_is_replaced_when_a_killed_runner_left_one(start: Start, path: pathlib.Path) -> None:
    killed = start()
    _wait_until(path.exists)
    killed.kill()
    killed.wait()
    old = path.stat().st_ino
    start()
    _wait_until(lambda: path.stat().st_ino != old)
    with _connect(path) as stream:
        assert _exchange_hello(stream, uuid.uuid4())[0] == protocol.FrameKind.HELLO


def test_hello_carries_a_pidfd_of_the_runner(start: Start, path: pathlib.Path) -> None:
    child = start()
    with _connect(path) as stream:
        _, descriptor = _exchange_hello(stream, uuid.uuid4())
        assert descriptor is not None
        assert not os.get_inheritable(descriptor)
        assert not _has_ended(descriptor)
        child.kill()
        select.select([descriptor], [], [])
        os.close(descriptor)


def test_socket_is_created_when_its_path_is_relative(start: Start, path: pathlib.Path) -> None:
    start(pathlib.Path(path.name))
    _wait_until(path.exists)


@pytest.mark.parametrize(
    ("name", "why"),
    [("no/socket", "No such file or directory"), ("d" * 120, "AF_UNIX path too long")],
)
def test_runner_exits_with_a_reason_when_the_socket_cannot_be_created(
    start: Start, tmp_path: pathlib.Path, name: str, why: str
) -> None:
    child = start(tmp_path / name)
    assert child.wait() == 2
    assert child.stderr is not None
    lines = child.stderr.read().decode().splitlines()
    assert lines[-1].endswith(f": {why}")
    assert f"cannot create {tmp_path}/{name}" in lines[-1]


@pytest.fixture
def leftovers(tmp_path: pathlib.Path) -> Iterator[tuple[uuid.UUID, "subprocess.Popen[bytes]"]]:
    """The folder of a killed runner, and a command that runs in it."""
    boot = uuid.uuid4()
    folder = tmp_path / f"workron-{boot.hex}" / "1"
    folder.mkdir(parents=True)
    variables = {workspace.BOOT_VARIABLE: str(boot)}
    with subprocess.Popen(["/bin/sleep", "1000"], env=variables, cwd=folder) as child:
        yield boot, child
        child.kill()


def test_leftovers_of_a_killed_runner_are_removed_before_the_socket_appears(
    start: Start,
    path: pathlib.Path,
    tmp_path: pathlib.Path,
    leftovers: tuple[uuid.UUID, "subprocess.Popen[bytes]"],
) -> None:
    boot, orphan = leftovers
    start()
    with _connect(path) as stream:
        assert orphan.poll() == -signal.SIGKILL
        assert [one.name for one in tmp_path.iterdir()] == ["socket"]
        # The agent may be the same as before, with the same boot.
        assert _exchange_hello(stream, boot)[0] == protocol.FrameKind.HELLO


def test_folder_is_kept_when_its_runner_is_alive(
    start: Start,
    path: pathlib.Path,
    tmp_path: pathlib.Path,
    leftovers: tuple[uuid.UUID, "subprocess.Popen[bytes]"],
) -> None:
    boot, neighbour = leftovers
    lock = workspace.lock_folder(tmp_path / f"workron-{boot.hex}")
    start()
    _connect(path).close()
    assert neighbour.poll() is None
    os.close(lock)


@pytest.mark.parametrize("name", ["workron-notes", "workron-12", "other"])
def test_folder_is_kept_when_its_name_is_not_one_of_a_runner(
    start: Start, path: pathlib.Path, tmp_path: pathlib.Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    start()
    _connect(path).close()
    assert (tmp_path / name).is_dir()


def test_runner_exits_with_a_reason_when_no_folder_is_writable(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", none)
    with NeverTerminated() as never, pytest.raises(SystemExit):
        __main__._accept_agent(__main__._parser(), path, None, cast("TerminationSignals", never))
    assert "commands need a writable folder: No usable temporary" in capsys.readouterr().err

"""The path at which a runner waits: who is let in, who is not, and what stands there meanwhile."""

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

from tests.runner.mate import COMMAND, environment
from workron_runner import __main__, connection, event_loop, protocol, workspace
from workron_runner.connection import FrameConnection
from workron_runner.sandbox import TerminationSignals

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "door"


@pytest.fixture
def start(tmp_path: pathlib.Path, path: pathlib.Path) -> Iterator[Start]:
    """Start a runner, by default at that path."""
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


def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        select.select([], [], [], 0.005)


def _entered(path: pathlib.Path) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)

    def has_connected() -> bool:
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            stream.connect(str(path))
            return True
        return False

    _until(has_connected)
    return stream


def _greeted(stream: socket.socket, boot: uuid.UUID) -> tuple[int, int | None]:
    """Greet; the kind of the answer, and the descriptor that came with it."""
    link = FrameConnection(stream)
    link.send(protocol.encode(protocol.Hello(protocol.VERSION, boot.hex, event_loop.boottime())))
    select.select([link], [], [])
    descriptor = link.peek_descriptor()
    [one] = link.receive()
    return one.kind, descriptor


def _has_ended(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def test_one_who_comes_is_let_in_and_the_path_is_gone(start: Start, path: pathlib.Path) -> None:
    child = start()
    with _entered(path) as stream:
        kind, _ = _greeted(stream, uuid.uuid4())
        assert kind == protocol.FrameKind.HELLO
        assert not path.exists()
    assert child.wait() == 0
    assert child.stderr is not None
    assert child.stderr.read().decode().splitlines() == [
        f"workron_runner: waiting for an agent at {path}",
        "workron_runner: agent connected",
        "workron_runner: all commands have ended: the agent has disconnected",
    ]


def test_path_can_be_used_by_user_and_group_alone_from_the_moment_it_is_there(
    start: Start, path: pathlib.Path
) -> None:
    start()
    _until(path.exists)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    _entered(path).close()


def test_who_goes_again_without_a_word_is_passed_over(start: Start, path: pathlib.Path) -> None:
    start()
    _entered(path).close()
    with _entered(path) as stream:
        assert _greeted(stream, uuid.uuid4())[0] == protocol.FrameKind.HELLO


class NeverTerminated:
    """A process that nobody asks to terminate."""

    def __enter__(self) -> Self:
        self._descriptor = os.eventfd(0)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def is_requested(self) -> bool:
        return False


def test_who_says_nothing_is_shown_out_and_the_next_is_let_in(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_FIRST_BYTE_TIMEOUT_SECONDS", 0.01)
    with NeverTerminated() as termination:
        one = connection.RunnerListener(path, cast("TerminationSignals", termination))
        with _entered(path) as silent, _entered(path) as speaker:
            speaker.send(b"x")
            stream = one.accept()
            assert stream is not None
            with stream:
                assert silent.recv(1) == b""
                stream.send(b"y")
                assert speaker.recv(1) == b"y"


@pytest.mark.parametrize("is_visited", [False, True], ids=["alone", "with one who is silent"])
def test_runner_that_waits_ends_on_a_signal_and_leaves_nothing(
    start: Start, path: pathlib.Path, tmp_path: pathlib.Path, *, is_visited: bool
) -> None:
    child = start()
    _until(path.exists)
    with _entered(path) if is_visited else contextlib.nullcontext():
        child.terminate()
        assert child.wait() == 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_runner_left_at_the_path_is_replaced(
    start: Start, path: pathlib.Path
) -> None:
    killed = start()
    _until(path.exists)
    killed.kill()
    killed.wait()
    left = path.stat().st_ino
    start()
    _until(lambda: path.stat().st_ino != left)
    with _entered(path) as stream:
        assert _greeted(stream, uuid.uuid4())[0] == protocol.FrameKind.HELLO


def test_hello_comes_with_what_tells_of_the_end_of_the_runner(
    start: Start, path: pathlib.Path
) -> None:
    child = start()
    with _entered(path) as stream:
        _, descriptor = _greeted(stream, uuid.uuid4())
        assert descriptor is not None
        assert not os.get_inheritable(descriptor)
        assert not _has_ended(descriptor)
        child.kill()
        select.select([descriptor], [], [])
        os.close(descriptor)


def test_path_may_be_relative(start: Start, path: pathlib.Path) -> None:
    start(pathlib.Path(path.name))
    _until(path.exists)


@pytest.mark.parametrize(
    ("name", "why"),
    [("no/door", "No such file or directory"), ("d" * 120, "AF_UNIX path too long")],
)
def test_path_that_cannot_be_made_is_said(
    start: Start, tmp_path: pathlib.Path, name: str, why: str
) -> None:
    child = start(tmp_path / name)
    assert child.wait() == 2
    assert child.stderr is not None
    said = child.stderr.read().decode().splitlines()
    assert said[-1].endswith(f": {why}")
    assert f"cannot create {tmp_path}/{name}" in said[-1]


@pytest.fixture
def left(tmp_path: pathlib.Path) -> Iterator[tuple[uuid.UUID, "subprocess.Popen[bytes]"]]:
    """What a killed runner leaves: a folder with a command in it."""
    boot = uuid.uuid4()
    folder = tmp_path / f"workron-{boot.hex}" / "1"
    folder.mkdir(parents=True)
    mark = {workspace.BOOT_VARIABLE: str(boot)}
    with subprocess.Popen(["/bin/sleep", "1000"], env=mark, cwd=folder) as child:
        yield boot, child
        child.kill()


def test_before_a_runner_waits_what_a_killed_one_left_is_dead_and_gone(
    start: Start,
    path: pathlib.Path,
    tmp_path: pathlib.Path,
    left: tuple[uuid.UUID, "subprocess.Popen[bytes]"],
) -> None:
    boot, orphan = left
    start()
    with _entered(path) as stream:
        assert orphan.poll() == -signal.SIGKILL
        assert [one.name for one in tmp_path.iterdir()] == ["door"]
        # The agent may be the same as before, with the same boot.
        assert _greeted(stream, boot)[0] == protocol.FrameKind.HELLO


def test_folder_of_a_runner_that_lives_is_let_be(
    start: Start,
    path: pathlib.Path,
    tmp_path: pathlib.Path,
    left: tuple[uuid.UUID, "subprocess.Popen[bytes]"],
) -> None:
    boot, neighbour = left
    lock = workspace.lock_folder(tmp_path / f"workron-{boot.hex}")
    start()
    _entered(path).close()
    assert neighbour.poll() is None
    os.close(lock)


@pytest.mark.parametrize("name", ["workron-notes", "workron-12", "other"])
def test_what_is_no_runners_is_let_be(
    start: Start, path: pathlib.Path, tmp_path: pathlib.Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    start()
    _entered(path).close()
    assert (tmp_path / name).is_dir()


def test_runner_without_a_folder_for_commands_says_so(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", none)
    with NeverTerminated() as never, pytest.raises(SystemExit):
        __main__._accept_agent(__main__._parser(), path, None, cast("TerminationSignals", never))
    said = capsys.readouterr().err
    assert "commands need a writable folder: No usable temporary" in said

"""Connects an agent to a runner: one that it starts itself, or one that listens at a path.

The agent does not trust a runner's messages, because a runner runs other people's commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import select
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final
from uuid import UUID

import structlog

import workron_runner
from workron_runner import boot_cleanup, event_loop, protocol
from workron_runner.connection import FrameConnection
from workron_runner.protocol import Frame, FrameKind, Hello, ProtocolError, Shutdown
from workron_runner.uids import UidPool, UidRange
from workron_worker.executor import StartError

HELLO_TIMEOUT_SECONDS: Final = 30
CLOSE_TIMEOUT_SECONDS: Final = 10

_log = structlog.get_logger(__name__)


class RunnerConnection(ABC):
    """One runner, from the Hello messages until its end; receives on the agent's event loop."""

    def __init__(self, connection: FrameConnection) -> None:
        self._connection = connection
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_write_scheduled = False
        self._on_frame: Callable[[Frame], None]
        self._on_lost: Callable[[str], object]
        self._lost_reason = "it has disconnected"
        self._pidfd: int | None = None
        """The runner's, if it has passed one with its Hello."""

    @abstractmethod
    def disconnect_and_wait(self) -> None:
        """Close the connection, which makes the runner kill everything, and wait for its end."""

    def attach(self, on_frame: Callable[[Frame], None], on_lost: Callable[[str], object]) -> None:
        """Receive on the running loop; `on_lost` is called once, with the reason."""
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._connection.fileno(), self._receive)
        self._schedule_write()

    def send(self, frames: bytes) -> None:
        """Send without blocking; all frames of one loop iteration are written together."""
        self._connection.queue(frames)
        self._schedule_write()

    def close(self) -> None:
        """Shut the runner down, and return when it has ended."""
        self._send_shutdown()
        self.disconnect_and_wait()

    def _send_shutdown(self) -> None:
        self._detach()
        self._connection.send_and_close(protocol.encode(Shutdown()), CLOSE_TIMEOUT_SECONDS)

    def _schedule_write(self) -> None:
        if self._loop is not None and not self._is_write_scheduled:
            self._is_write_scheduled = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._is_write_scheduled = False
        if self._loop is None:
            return
        self._connection.flush()
        if self._connection.has_unsent:
            self._loop.add_writer(self._connection.fileno(), self._write)
        else:
            self._loop.remove_writer(self._connection.fileno())

    def _receive(self) -> None:
        try:
            for frame in self._connection.receive():
                if frame.kind == FrameKind.SHUTDOWN:
                    message = protocol.decode(frame.kind, frame.payload)
                    assert isinstance(message, Shutdown)
                    self._lost_reason = message.reason or self._lost_reason
                else:
                    self._on_frame(frame)
        except ProtocolError as error:
            self._lost(str(error))
        except Exception as error:  # noqa: BLE001 - a runner is not trusted, whatever it sends
            self._lost(f"cannot understand it: {type(error).__name__}: {error}")
        else:
            if not self._connection.is_open:
                self._lost(self._lost_reason)

    def _lost(self, reason: str) -> None:
        self._detach()
        self._on_lost(reason)

    def _detach(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._connection.fileno())
            loop.remove_writer(self._connection.fileno())

    def _release(self) -> None:
        self._connection.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def _exchange_hello(self, boot: UUID) -> None:
        sent_at = event_loop.boottime()
        self._connection.send(protocol.encode(Hello(protocol.VERSION, boot.hex, sent_at)))
        hello = self._first_message()
        if isinstance(hello, Shutdown):
            raise ProtocolError(hello.reason or "it shut down at once")
        if not isinstance(hello, Hello):
            raise ProtocolError(f"it began with {hello}")
        if hello.version != protocol.VERSION:
            raise ProtocolError(f"it speaks version {hello.version}, not {protocol.VERSION}")
        if not sent_at <= hello.clock <= event_loop.boottime():
            raise ProtocolError("it reads another CLOCK_BOOTTIME; is it in another time namespace?")

    def _first_message(self) -> protocol.Message:
        until = time.monotonic() + HELLO_TIMEOUT_SECONDS
        poller = select.poll()
        poller.register(self._connection, select.POLLIN)
        while (left := until - time.monotonic()) > 0 and self._connection.is_open:
            poller.poll(left * 1000)
            if self._pidfd is None:
                self._pidfd = self._connection.peek_descriptor()
            for frame in self._connection.receive():
                return protocol.decode(frame.kind, frame.payload)
        raise ProtocolError("it did not answer")


class SocketRunners:
    """Runners that listen at a path, one after the other."""

    are_external = True
    """Something else starts them, so one may have to be waited for."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def connect(self, boot: UUID) -> SocketRunner:
        """Connect to the runner that listens there now."""
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.settimeout(HELLO_TIMEOUT_SECONDS)
            stream.connect(str(self._path))
        except OSError as error:
            stream.close()
            reason = error.strerror or str(error)
            raise StartError(f"no runner listens at {self._path}: {reason}") from None
        return SocketRunner(boot, stream, self._path)

    def clean_up(self, boot: UUID) -> None:
        """Kill what carries the boot, where this process can see it."""
        # An agent that runs no commands of its own needs no folder for them.
        with contextlib.suppress(FileNotFoundError):
            boot_cleanup.clean_up_boot(boot)


class SocketRunner(RunnerConnection):
    """A runner at a path, and the pidfd that it passes with its Hello."""

    def __init__(self, boot: UUID, stream: socket.socket, path: pathlib.Path) -> None:
        super().__init__(FrameConnection(stream))
        self._path = path
        try:
            self._exchange_hello(boot)
        except ProtocolError as error:
            self._release()
            raise StartError(f"cannot use the runner at {path}: {error}") from None
        if self._pidfd is None:
            self._release()
            raise StartError(f"cannot use the runner at {path}: it passes no pidfd")

    def disconnect_and_wait(self) -> None:
        """Close the connection and wait without limit: until its end its commands may run."""
        self._connection.close()
        while not self._wait_for_end():
            _log.warning("lost runner still running", path=str(self._path))
        self._release()

    def close(self) -> None:
        """Shut the runner down, and return when it has ended or after a timeout."""
        self._send_shutdown()
        self._wait_for_end()
        self._release()

    def _wait_for_end(self) -> bool:
        poller = select.poll()
        if self._pidfd is not None:
            poller.register(self._pidfd, select.POLLIN)
        return self._pidfd is None or bool(poller.poll(CLOSE_TIMEOUT_SECONDS * 1000))


class _KilledError(StartError):
    """A runner was killed from outside while it started."""


@dataclass(frozen=True, slots=True)
class ChildRunners:
    """Runners that are children of this process, and how they isolate commands."""

    is_isolating: bool = False
    """Each in a Landlock domain of its own."""
    uids: UidRange | None = None
    """Each with a uid of its own from this range."""
    processes: int | None = None
    """At most this many processes and threads per command; only together with uids."""
    command: Sequence[str] = (sys.executable, "-PSs", "-m", "workron_runner")
    """The program of the runner, before its arguments."""

    are_external: ClassVar = False

    def connect(self, boot: UUID) -> ChildRunner:
        """Start a runner, again if it is killed from outside while it starts."""
        with contextlib.suppress(_KilledError):
            return ChildRunner(boot, [*self.command, *self.arguments()])
        return ChildRunner(boot, [*self.command, *self.arguments()])

    def arguments(self) -> list[str]:
        """Return the options as arguments of the runner's command line."""
        return [
            *(["--isolate"] if self.is_isolating else []),
            *(["--uids", str(self.uids)] if self.uids else []),
            *(["--processes", str(self.processes)] if self.processes is not None else []),
        ]

    def clean_up(self, boot: UUID) -> None:
        """Kill everything that carries the boot, or has one of the uids."""
        boot_cleanup.clean_up_boot(boot)
        if self.uids is not None:
            UidPool(self.uids).kill_all()


class ChildRunner(RunnerConnection):
    """A runner as a child process; StartError if it cannot start."""

    def __init__(self, boot: UUID, command: list[str]) -> None:
        self._child, connection = _start_process(command)
        super().__init__(connection)
        try:
            self._exchange_hello(boot)
        except ProtocolError as error:
            self.disconnect_and_wait()
            if self._child.returncode < 0:
                raise _KilledError(f"the runner did not start: {error}; it was killed") from None
            hint = "; its standard error says why" if self._child.returncode else ""
            raise StartError(f"the runner did not start: {error}{hint}") from None

    @property
    def pid(self) -> int:
        """The pid of the runner."""
        return self._child.pid

    def disconnect_and_wait(self) -> None:
        """Close the connection and wait; kill the runner if it does not end."""
        self._release()
        try:
            self._child.wait(CLOSE_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


Runners = ChildRunners | SocketRunners


def _start_process(command: list[str]) -> tuple[subprocess.Popen[bytes], FrameConnection]:
    if not sys.platform.startswith("linux"):
        raise StartError(
            f"workers run on Linux only, and this is {sys.platform}: use the container image, or a"
            " Linux virtual machine"
        )
    ours, theirs = socket.socketpair()
    # Python's isolated mode would ignore PYTHONPATH, which says where the package is.
    package_path = str(pathlib.Path(workron_runner.__file__).parents[1])
    passed = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    with theirs:
        try:
            child = subprocess.Popen(  # noqa: S603 - this Python, and our own package
                [*command, "--descriptor", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=passed | {"PYTHONPATH": package_path, "TMPDIR": tempfile.gettempdir()},
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise StartError(f"cannot start a runner: {error.strerror}") from error
    return child, FrameConnection(ours)

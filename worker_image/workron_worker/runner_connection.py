"""A runner as its agent sees it: frames to it, frames from it, and an end that can be waited for.

Made by `runner_process`, for a child of the agent, and by `runner_path`, for one that was started
elsewhere; used by `runner_executor`. What the runner says is heard on the agent's own loop, and is
not trusted: it runs other people's commands.
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import structlog

import workron_runner
from workron_runner import event_loop, process_reaper, protocol
from workron_runner.connection import SocketLink
from workron_runner.protocol import Bye, Hello, Kind, ProtocolError
from workron_runner.uids import Uids
from workron_worker.executor import StartError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from workron_runner.protocol import Frame
    from workron_runner.uids import Range
    from workron_worker.meter import WorkerMeter


GREETING_SECONDS: Final = 30
CLOSE_SECONDS: Final = 10


class Runners(Protocol):
    """Where an executor has its runners from."""

    @property
    def are_awaited(self) -> bool:
        """Whether they come when they come, and not when one is asked for."""

    def begin(self, boot: UUID) -> RunnerConnection:
        """Give one that has been greeted; StartError if there is none to be had."""

    def clear(self, boot: UUID) -> None:
        """End what a lost one left, where this process can reach it."""


class RunnerConnection(ABC):
    """One runner, from its first word until it is gone."""

    def __init__(self, link: SocketLink) -> None:
        self._link = link
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_about_to_write = False
        self._hear: Callable[[Frame], None]
        self._lose: Callable[[str], object]
        self._why = "it is gone"

    @abstractmethod
    def bury(self) -> None:
        """Close the connection, whose end has it end all that it runs, and wait for its own end."""

    def attend(self, hear: Callable[[Frame], None], lose: Callable[[str], object]) -> None:
        """Listen to it on this loop; `lose` is told once why nothing more will be heard."""
        self._hear = hear
        self._lose = lose
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._link.fileno(), self._listen)
        self._write_soon()

    def send(self, frames: bytes) -> None:
        """Send without waiting, all that is said in one turn of the loop together."""
        self._link.put(frames)
        self._write_soon()

    def close(self) -> None:
        """Have it end everything, and return when it is gone."""
        self._say_goodbye()
        self.bury()

    def _say_goodbye(self) -> None:
        self._turn_away()
        self._link.say_last(protocol.encode(Bye()), CLOSE_SECONDS)

    def _write_soon(self) -> None:
        if self._loop is not None and not self._is_about_to_write:
            self._is_about_to_write = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._is_about_to_write = False
        if self._loop is None:
            return
        self._link.flush()
        if self._link.has_backlog:
            self._loop.add_writer(self._link.fileno(), self._write)
        else:
            self._loop.remove_writer(self._link.fileno())

    def _listen(self) -> None:
        try:
            for one in self._link.receive():
                self._take(one)
        except ProtocolError as error:
            self._end(str(error))
        except Exception as error:  # noqa: BLE001 - what it says is not trusted, however it is wrong
            self._end(f"it cannot be understood: {type(error).__name__}: {error}")
        else:
            if not self._link.is_open:
                self._end(self._why)

    def _take(self, one: Frame) -> None:
        if one.kind == Kind.BYE:
            self._why = _why(one) or self._why
        else:
            self._hear(one)

    def _end(self, why: str) -> None:
        self._turn_away()
        self._lose(why)

    def _turn_away(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._link.fileno())
            loop.remove_writer(self._link.fileno())

    def _look_at(self, link: SocketLink) -> None:  # noqa: B027 - there need not be anything
        """See what comes with the first word."""

    def _greet(self, boot: UUID) -> None:
        sent_at = event_loop.clock_now()
        self._link.send(protocol.encode(Hello(protocol.VERSION, boot.hex, sent_at)))
        hello = self._first_word()
        if isinstance(hello, Bye):
            raise ProtocolError(hello.why or "it said goodbye at once")
        if not isinstance(hello, Hello):
            raise ProtocolError(f"it began with {hello}")
        if hello.version != protocol.VERSION:
            raise ProtocolError(f"it speaks version {hello.version}, not {protocol.VERSION}")
        if not sent_at <= hello.clock <= event_loop.clock_now():
            raise ProtocolError("it reads another CLOCK_BOOTTIME; is it in another time namespace?")

    def _first_word(self) -> protocol.Message:
        until = time.monotonic() + GREETING_SECONDS
        poller = select.poll()
        poller.register(self._link, select.POLLIN)
        while (left := until - time.monotonic()) > 0 and self._link.is_open:
            poller.poll(left * 1000)
            self._look_at(self._link)
            for one in self._link.receive():
                return protocol.decode(one.kind, one.payload)
        raise ProtocolError("it did not answer")


def _why(bye: Frame) -> str | None:
    message = protocol.decode(bye.kind, bye.payload)
    assert isinstance(message, Bye)
    return message.why


_log = structlog.get_logger(__name__)


class SocketRunners:
    """Has the runners that come to a path, one after the other."""

    are_awaited = True

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def begin(self, boot: UUID) -> SocketRunner:
        """Take the one that waits there now."""
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.settimeout(GREETING_SECONDS)
            stream.connect(str(self._path))
        except OSError as error:
            stream.close()
            why = error.strerror or str(error)
            raise StartError(f"no runner waits at {self._path}: {why}") from None
        return SocketRunner(boot, stream, self._path)

    def clear(self, boot: UUID) -> None:
        """End what carries the boot, where it is seen from here."""
        # Who runs no command of its own may do without a folder for them.
        with contextlib.suppress(FileNotFoundError):
            process_reaper.end_orphans(boot)


class SocketRunner(RunnerConnection):
    """One such runner; StartError if it is none."""

    def __init__(self, boot: UUID, stream: socket.socket, path: pathlib.Path) -> None:
        super().__init__(SocketLink(stream))
        self._path = path
        self._death: int | None = None
        try:
            self._greet(boot)
        except ProtocolError as error:
            self._forget()
            raise StartError(f"no runner can be had at {path}: {error}") from None
        if self._death is None:
            self._forget()
            raise StartError(f"the runner at {path} hands over nothing that tells of its end")

    def bury(self) -> None:
        """Close the connection and wait, however long: until its end what it ran may still run."""
        self._link.close()
        while not self._has_ended():
            _log.warning("a lost runner has not ended", path=str(self._path))
        self._forget()

    def close(self) -> None:
        """Have it end everything, and return when it is gone, or does not want to."""
        self._say_goodbye()
        self._has_ended()
        self._forget()

    def _has_ended(self) -> bool:
        poller = select.poll()
        if self._death is not None:
            poller.register(self._death, select.POLLIN)
        return self._death is None or bool(poller.poll(CLOSE_SECONDS * 1000))

    def _look_at(self, link: SocketLink) -> None:
        if self._death is None:
            self._death = link.handed_over()

    def _forget(self) -> None:
        self._link.close()
        if self._death is not None:
            os.close(self._death)
            self._death = None


_LONGEST_SECONDS: Final = 900
"""Kubernetes waits for 300 s at most before it starts a container again."""
_PAUSE_SECONDS: Final = 0.2


async def wait_for_runner(look: Callable[[], Awaitable[object]], meter: WorkerMeter) -> None:
    """Look until there is one; StartError, if there was none for too long."""
    loop = asyncio.get_running_loop()
    began, said = loop.time(), ""
    meter.awaits_runner("a runner is looked for")
    while True:
        try:
            await look()
        except StartError as error:
            if loop.time() - began >= _LONGEST_SECONDS:
                raise
            why = str(error)
        else:
            break
        if why != said:
            said = why
            meter.awaits_runner(why)
            _log.info("runner is waited for", why=why)
        await asyncio.sleep(_PAUSE_SECONDS)
    meter.found_runner()
    _log.info("runner found", waited_seconds=round(loop.time() - began, 3))


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How commands are kept apart; by default they are not."""

    is_isolating: bool = False
    """Each in a Landlock domain of its own."""
    uids: Range | None = None
    """Each with a uid of its own out of these, which are nobody else's."""
    processes: int | None = None
    """So many processes and threads of one command at most; only together with uids."""

    def words(self) -> list[str]:
        """Write them for the command line of a runner."""
        return [
            *(["--isolate"] if self.is_isolating else []),
            *(["--uids", str(self.uids)] if self.uids else []),
            *(["--processes", str(self.processes)] if self.processes is not None else []),
        ]

    def end_all(self) -> None:
        """Kill what a runner that is gone left under its uids, and return when it is dead."""
        if self.uids is not None:
            Uids(self.uids).end_all()


_COMMAND: Final = (sys.executable, "-PSs", "-m", "workron_runner")
_USUAL: Final = RunnerOptions()


class _KilledError(StartError):
    """Somebody killed a runner that was about to begin."""


class ChildRunners:
    """Has each runner started by this process."""

    are_awaited = False

    def __init__(self, options: RunnerOptions = _USUAL) -> None:
        self._options = options

    def begin(self, boot: UUID) -> ChildRunner:
        """Start one."""
        return begun(boot, self._options)

    def clear(self, boot: UUID) -> None:
        """End all that carries the boot, or has one of the uids."""
        process_reaper.end_orphans(boot)
        self._options.end_all()


def begun(boot: UUID, options: RunnerOptions) -> ChildRunner:
    """Start a runner; one that is killed as it begins is no reason to do without."""
    try:
        return ChildRunner(boot, options)
    except _KilledError:
        return ChildRunner(boot, options)


class ChildRunner(RunnerConnection):
    """One such runner; StartError if there is none to be had."""

    def __init__(self, boot: UUID, options: RunnerOptions) -> None:
        self._child, link = _start(options)
        super().__init__(link)
        try:
            self._greet(boot)
        except ProtocolError as error:
            self.bury()
            if self._child.returncode < 0:
                raise _KilledError(f"no runner can be had: {error}; it was killed") from None
            said = "; its standard error says why" if self._child.returncode else ""
            raise StartError(f"no runner can be had: {error}{said}") from None

    @property
    def pid(self) -> int:
        """Of the runner."""
        return self._child.pid

    def bury(self) -> None:
        """Close the connection and wait; one that does not end is killed."""
        self._link.close()
        try:
            self._child.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


def _start(options: RunnerOptions) -> tuple[subprocess.Popen[bytes], SocketLink]:
    if not sys.platform.startswith("linux"):
        raise StartError(
            f"commands are run on Linux only, and this is {sys.platform}: start workron in a Linux"
            " container or virtual machine"
        )
    ours, theirs = socket.socketpair()
    # Not in isolated mode: the package may stand anywhere, and this names where.
    home = str(pathlib.Path(workron_runner.__file__).parents[1])
    passed = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    with theirs:
        try:
            child = subprocess.Popen(  # noqa: S603 - this Python, and our own package
                [*_COMMAND, "--descriptor", str(theirs.fileno()), *options.words()],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=passed | {"PYTHONPATH": home, "TMPDIR": tempfile.gettempdir()},
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise StartError(f"no runner can be started: {error.strerror}") from error
    return child, SocketLink(ours)

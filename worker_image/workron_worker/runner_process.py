"""A runner as its agent sees it: a child process, frames to it, and frames from it.

Called by `runner_executor`. What the runner says is heard on the agent's own loop, and is not
trusted: it runs other people's commands.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
import select
import socket
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Final

import workron_runner
from workron_runner import limits, messages
from workron_runner.frame import ProtocolError
from workron_runner.link import Link
from workron_runner.messages import Bye, Hello, Kind
from workron_worker.executor import StartError

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from workron_runner.frame import Frame
    from workron_worker.runner_options import RunnerOptions

_COMMAND: Final = (sys.executable, "-PSs", "-m", "workron_runner")
_GREETING_SECONDS: Final = 30
_FAREWELL_SECONDS: Final = 10


class _KilledError(StartError):
    """Somebody killed a runner that was about to begin."""


def begun(boot: UUID, options: RunnerOptions) -> RunnerProcess:
    """Start a runner; one that is killed as it begins is no reason to do without."""
    try:
        return RunnerProcess(boot, options)
    except _KilledError:
        return RunnerProcess(boot, options)


class RunnerProcess:
    """One runner, from its start until it is gone; StartError if there is none to be had."""

    def __init__(self, boot: UUID, options: RunnerOptions) -> None:
        self._child, self._link = _start(options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_about_to_write = False
        self._hear: Callable[[Frame], None]
        self._lose: Callable[[str], object]
        self._why = "it is gone"
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
        self._turn_away()
        self._link.say_last(messages.encode(Bye()), _FAREWELL_SECONDS)
        self.bury()

    def bury(self) -> None:
        """Close the connection, whose end has it end all that it runs, and wait for its own end."""
        self._link.close()
        try:
            self._child.wait(_FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

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

    def _greet(self, boot: UUID) -> None:
        sent_at = limits.now()
        self._link.send(messages.encode(Hello(messages.VERSION, boot.hex, sent_at)))
        hello = self._first_word()
        if isinstance(hello, Bye):
            raise ProtocolError(hello.why or "it said goodbye at once")
        if not isinstance(hello, Hello):
            raise ProtocolError(f"it began with {hello}")
        if hello.version != messages.VERSION:
            raise ProtocolError(f"it speaks version {hello.version}, not {messages.VERSION}")
        if not sent_at <= hello.clock <= limits.now():
            raise ProtocolError("it reads another CLOCK_BOOTTIME; is it in another time namespace?")

    def _first_word(self) -> messages.Message:
        until = time.monotonic() + _GREETING_SECONDS
        poller = select.poll()
        poller.register(self._link, select.POLLIN)
        while (left := until - time.monotonic()) > 0 and self._link.is_open:
            poller.poll(left * 1000)
            for one in self._link.receive():
                return messages.decode(one.kind, one.payload)
        raise ProtocolError("it did not answer")


def _start(options: RunnerOptions) -> tuple[subprocess.Popen[bytes], Link]:
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
    return child, Link(ours)


def _why(bye: Frame) -> str | None:
    message = messages.decode(bye.kind, bye.payload)
    assert isinstance(message, Bye)
    return message.why

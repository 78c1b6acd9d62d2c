"""A runner as its agent sees it: a child process, frames to it, and frames from it.

Called by `runner_executor`. A thread reads, so that whoever hears output may take its time without
the agent's beats being late. What the runner says is not trusted: it runs other people's commands.
"""

from __future__ import annotations

import os
import pathlib
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Final

import workron_runner
from workron_runner import limits, messages
from workron_runner.frame import ProtocolError
from workron_runner.link import Link
from workron_runner.messages import Bye, Hello, Kind
from workron_worker.executor import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from workron_runner.frame import Frame

_COMMAND: Final = (sys.executable, "-PSs", "-m", "workron_runner")
_GREETING_SECONDS: Final = 30
_FAREWELL_SECONDS: Final = 10


class RunnerProcess:
    """One runner, from its start until it is gone; StartError if there is none to be had."""

    def __init__(
        self, boot: UUID, hear: Callable[[Frame], None], lose: Callable[[str], None]
    ) -> None:
        self._hear = hear
        self._lose = lose
        self._lock = threading.Lock()
        self.is_lost = False
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._child, self._link = _start()
        try:
            self._greet(boot)
        except ProtocolError as error:
            self._bury()
            raise StartError(f"no runner can be had: {error}") from None
        self._thread = threading.Thread(target=self._listen, name="runner", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Of the runner."""
        return self._child.pid

    def send(self, frames: bytes) -> None:
        """Send without waiting; what the socket does not take now goes as soon as it does."""
        with self._lock:
            self._link.send(frames)
            if self._link.has_backlog:
                os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """Have it end everything, and return when it is gone."""
        self.send(messages.encode(Bye()))
        self._thread.join(_FAREWELL_SECONDS)
        self._child.kill()
        self._thread.join()

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
        while (left := until - time.monotonic()) > 0 and self._link.is_open:
            select.select([self._link], [], [], left)
            for one in self._link.receive():
                return messages.decode(one.kind, one.payload)
        raise ProtocolError("it did not answer")

    def _listen(self) -> None:
        why = "it is gone"
        try:
            for one in self._frames():
                if one.kind == Kind.BYE:
                    why = _why(one) or why
                else:
                    self._hear(one)
        except ProtocolError as error:
            why = str(error)
        finally:
            self._bury()
            self.is_lost = True
            self._lose(why)

    def _frames(self) -> Iterator[Frame]:
        poller = select.poll()
        poller.register(self._bell, select.POLLIN)
        while self._link.is_open:
            wanted = select.POLLIN | (select.POLLOUT if self._link.has_backlog else 0)
            poller.register(self._link, wanted)
            if self._bell in (descriptor for descriptor, _ in poller.poll()):
                os.eventfd_read(self._bell)
            with self._lock:
                self._link.flush()
            yield from self._link.receive()

    def _bury(self) -> None:
        # It reads the end of the stream, and ends all that it runs before it ends itself.
        with self._lock:
            self._link.close()
            os.close(self._bell)
        try:
            self._child.wait(_FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


def _start() -> tuple[subprocess.Popen[bytes], Link]:
    ours, theirs = socket.socketpair()
    # Not in isolated mode: the package may stand anywhere, and this names where.
    home = str(pathlib.Path(workron_runner.__file__).parents[1])
    passed = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    with theirs:
        try:
            child = subprocess.Popen(  # noqa: S603 - this Python, and our own package
                [*_COMMAND, "--descriptor", str(theirs.fileno())],
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

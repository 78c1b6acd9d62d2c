"""The socket between agent and runner: non-blocking framed connections, and the runner's listener.

Both sides use `FrameConnection`; the agent's side is `workron_worker.runner_connection`.
"""

from __future__ import annotations

import contextlib
import pathlib
import select
import socket
import struct
from typing import Final

from workron_runner.protocol import Frame, FrameDecoder
from workron_runner.sandbox import TerminationSignals

_CHUNK_BYTES: Final = 256 * 1024
_INT: Final = struct.Struct("i")


class FrameConnection:
    """A stream socket that carries frames in both directions and never blocks."""

    def __init__(self, stream: socket.socket) -> None:
        stream.settimeout(0)
        self._stream = stream
        self._decoder = FrameDecoder()
        self._unsent = bytearray()
        self.is_open = True

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._stream.fileno()

    @property
    def has_unsent(self) -> bool:
        """Whether bytes wait until the socket is writable again."""
        return self.is_open and bool(self._unsent)

    def receive(self) -> list[Frame]:
        """Read once and return the frames that are complete; at end of file, `is_open` is False."""
        try:
            data = self._stream.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.is_open = False
        return self._decoder.feed(data)

    def queue(self, frames: bytes) -> None:
        """Add frames to what the next flush writes; dropped if the connection is closed."""
        if self.is_open:
            self._unsent += frames

    def send(self, frames: bytes) -> None:
        """Write what the socket takes now and queue the rest."""
        self.queue(frames)
        self.flush()

    def send_descriptor(self, frames: bytes, descriptor: int) -> None:
        """Write a few bytes, before anything else, and pass a descriptor with the first of them."""
        try:
            socket.send_fds(self._stream, [frames], [descriptor])
        except OSError:
            self.is_open = False

    def peek_descriptor(self) -> int | None:
        """Return the descriptor that comes with the next unread byte, if any."""
        # Not `socket.recv_fds`: it ignores its flags argument.
        flags = socket.MSG_PEEK | socket.MSG_CMSG_CLOEXEC
        try:
            _, ancillary, _, _ = self._stream.recvmsg(1, socket.CMSG_LEN(_INT.size), flags)
        except OSError:
            return None
        passed = [data for _, kind, data in ancillary if kind == socket.SCM_RIGHTS]
        return _INT.unpack(passed[0])[0] if passed else None

    def flush(self) -> None:
        """Write as much of the queue as the socket takes."""
        while self.has_unsent:
            try:
                del self._unsent[: self._stream.send(self._unsent)]
            except BlockingIOError:
                return
            except OSError:
                self.is_open = False

    def close(self) -> None:
        """Close the socket."""
        self.is_open = False
        self._stream.close()

    def send_and_close(self, frames: bytes, timeout_seconds: float) -> None:
        """Write the queue and these frames, blocking up to the timeout, and close."""
        self.send(frames)
        if self.is_open:
            with contextlib.suppress(OSError):
                self._stream.settimeout(timeout_seconds)
                self._stream.sendall(self._unsent)
        self.close()


_SOCKET_MODE: Final = 0o660
"""The agent may run as another user of the same group."""
_FIRST_BYTE_TIMEOUT_SECONDS: Final = 10
"""A client that connects and sends nothing must not keep the agent out."""


class RunnerListener:
    """A Unix socket at a path, which takes the first client that sends something."""

    def __init__(
        self,
        path: pathlib.Path,
        termination: TerminationSignals,
        first_byte_seconds: float = _FIRST_BYTE_TIMEOUT_SECONDS,
    ) -> None:
        """Listen at `path`; OSError: that is not possible. `termination` ends `accept`."""
        self._path = path
        self._termination = termination
        self._first_byte_seconds = first_byte_seconds
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            new = path.with_name(f"{path.name}.new")
            new.unlink(missing_ok=True)
            self._socket.bind(str(new))
            new.chmod(_SOCKET_MODE)
            self._socket.listen(1)
            # Atomic: complete when it appears, and replaces the socket of a killed runner.
            new.rename(path)
        except OSError:
            self._socket.close()
            raise

    def accept(self) -> socket.socket | None:
        """Return the agent's connection and close the listener; None: asked to terminate first."""
        try:
            while not self._termination.is_requested() and self._wait_readable(self._socket):
                stream, _ = self._socket.accept()
                if self._wait_readable(stream, self._first_byte_seconds) and _has_data(stream):
                    return stream
                stream.close()
            return None
        finally:
            self._path.unlink(missing_ok=True)
            self._socket.close()

    def _wait_readable(self, stream: socket.socket, timeout_seconds: float | None = None) -> bool:
        """Wait for data; False after the timeout or a request to terminate."""
        poller = select.poll()
        for source in (stream, self._termination):
            poller.register(source, select.POLLIN)
        timeout = None if timeout_seconds is None else timeout_seconds * 1000
        while ready := {descriptor for descriptor, _ in poller.poll(timeout)}:
            if self._termination.fileno() in ready and self._termination.is_requested():
                return False
            if stream.fileno() in ready:
                return True
        return False


def _has_data(stream: socket.socket) -> bool:
    with contextlib.suppress(OSError):
        return bool(stream.recv(1, socket.MSG_PEEK))
    return False

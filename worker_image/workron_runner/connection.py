"""One end of the socket between agent and runner; never waits, neither to read nor to write.

Called by `runner`, and on the other side by `workron_worker.runner_connection`.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from typing import TYPE_CHECKING, Final

from workron_runner.protocol import Decoder, Frame

if TYPE_CHECKING:
    import pathlib


_CHUNK_BYTES: Final = 256 * 1024
_INT: Final = struct.Struct("i")


class SocketLink:
    """A stream socket that carries frames both ways."""

    def __init__(self, stream: socket.socket) -> None:
        stream.settimeout(0)
        self._stream = stream
        self._decoder = Decoder()
        self._backlog = bytearray()
        self.is_open = True

    def fileno(self) -> int:
        """Give the descriptor to wait for."""
        return self._stream.fileno()

    @property
    def has_backlog(self) -> bool:
        """Whether something waits until the socket can be written to again."""
        return self.is_open and bool(self._backlog)

    def receive(self) -> list[Frame]:
        """Read once and give the frames that are complete now; at the end the link is closed."""
        try:
            data = self._stream.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.is_open = False
        return self._decoder.feed(data)

    def put(self, frames: bytes) -> None:
        """Keep this to be written with the next flush; nothing, if nobody is there to read."""
        if self.is_open:
            self._backlog += frames

    def send(self, frames: bytes) -> None:
        """Write what can be written now and keep the rest."""
        self.put(frames)
        self.flush()

    def send_with(self, frames: bytes, descriptor: int) -> None:
        """Write a few bytes before all else, and hand a descriptor over with the first of them."""
        try:
            socket.send_fds(self._stream, [frames], [descriptor])
        except OSError:
            self.is_open = False

    def handed_over(self) -> int | None:
        """Give the descriptor that comes with what can be read next, if there is one."""
        # Not `recv_fds` of the library, which takes flags and heeds none of them.
        flags = socket.MSG_PEEK | socket.MSG_CMSG_CLOEXEC
        try:
            _, beside, _, _ = self._stream.recvmsg(1, socket.CMSG_LEN(_INT.size), flags)
        except OSError:
            return None
        handed_over = [data for _, kind, data in beside if kind == socket.SCM_RIGHTS]
        return _INT.unpack(handed_over[0])[0] if handed_over else None

    def flush(self) -> None:
        """Write as much of what waits as the socket takes."""
        while self.has_backlog:
            try:
                del self._backlog[: self._stream.send(self._backlog)]
            except BlockingIOError:
                return
            except OSError:
                self.is_open = False

    def close(self) -> None:
        """Close the socket; the other side reads its end."""
        self.is_open = False
        self._stream.close()

    def say_last(self, frames: bytes, seconds: float) -> None:
        """Write this and all that waits, for so long at most, and close."""
        self.send(frames)
        if self.is_open:
            with contextlib.suppress(OSError):
                self._stream.settimeout(seconds)
                self._stream.sendall(self._backlog)
        self.close()


_MODE: Final = 0o660
"""The agent may be another user of the same group."""
_SILENCE_SECONDS: Final = 10
"""Who comes and says nothing for so long is shown out again, and keeps no agent waiting."""


class SocketListener:
    """A path that is open from now on."""

    def __init__(self, path: pathlib.Path, told: socket.socket) -> None:
        """Open it; OSError: it cannot be. What `told` can be read for ends the waiting."""
        self._path = path
        self._told = told
        self._socket = socket.socket(socket.AF_UNIX)
        new = path.with_name(f"{path.name}.new")
        new.unlink(missing_ok=True)
        self._socket.bind(str(new))
        new.chmod(_MODE)
        self._socket.listen(1)
        # Whole from its first moment on, and in the place of what a killed runner left there.
        new.rename(path)

    def let_in(self) -> socket.socket | None:
        """Wait for who comes and speaks, and shut the door; None: somebody asked to end before."""
        try:
            return self._await()
        finally:
            self._path.unlink(missing_ok=True)
            self._socket.close()

    def _await(self) -> socket.socket | None:
        while self._is_first(self._socket):
            stream, _ = self._socket.accept()
            if self._is_first(stream, _SILENCE_SECONDS) and _speaks(stream):
                return stream
            stream.close()
        return None

    def _is_first(self, stream: socket.socket, seconds: float | None = None) -> bool:
        """Whether something comes there in time, and before somebody asks to end."""
        poller = select.poll()
        for one in (stream, self._told):
            poller.register(one, select.POLLIN)
        ready = [one for one, _ in poller.poll(None if seconds is None else seconds * 1000)]
        return bool(ready) and self._told.fileno() not in ready


def _speaks(stream: socket.socket) -> bool:
    with contextlib.suppress(OSError):
        return bool(stream.recv(1, socket.MSG_PEEK))
    return False

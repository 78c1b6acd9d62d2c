"""The path at which a runner waits for its agent, where that did not start it.

Called by `__main__`. The path is there only while whoever comes next is let in: so an agent that
finds it has found a runner that nobody had before.
"""

from __future__ import annotations

import contextlib
import select
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pathlib

_MODE: Final = 0o660
"""The agent may be another user of the same group."""
_SILENCE_SECONDS: Final = 10
"""Who comes and says nothing for so long is shown out again, and keeps no agent waiting."""


class Door:
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

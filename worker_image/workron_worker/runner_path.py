"""A runner that waits for its agent at a path, as in another container of the same pod.

Called by `runner_executor`, and by whoever makes one. Its processes are not to be seen from here,
so it hands over a descriptor that tells of its end: where it is the first process of a container,
Linux tells that when nothing of the container runs any more, some milliseconds after the end of the
connection.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from typing import TYPE_CHECKING

import structlog

from workron_runner import orphans
from workron_runner.frame import ProtocolError
from workron_runner.link import Link
from workron_worker import runner_line
from workron_worker.executor import StartError
from workron_worker.runner_line import RunnerLine

if TYPE_CHECKING:
    import pathlib
    from uuid import UUID

_log = structlog.get_logger(__name__)


class AtPath:
    """Has the runners that come to a path, one after the other."""

    are_awaited = True

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def begin(self, boot: UUID) -> RunnerAtPath:
        """Take the one that waits there now."""
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.settimeout(runner_line.GREETING_SECONDS)
            stream.connect(str(self._path))
        except OSError as error:
            stream.close()
            why = error.strerror or str(error)
            raise StartError(f"no runner waits at {self._path}: {why}") from None
        return RunnerAtPath(boot, stream, self._path)

    def clear(self, boot: UUID) -> None:
        """End what carries the boot, where it is seen from here."""
        # Who runs no command of its own may do without a folder for them.
        with contextlib.suppress(FileNotFoundError):
            orphans.end(boot)


class RunnerAtPath(RunnerLine):
    """One such runner; StartError if it is none."""

    def __init__(self, boot: UUID, stream: socket.socket, path: pathlib.Path) -> None:
        super().__init__(Link(stream))
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
        return self._death is None or bool(poller.poll(runner_line.FAREWELL_SECONDS * 1000))

    def _look_at(self, link: Link) -> None:
        if self._death is None:
            self._death = link.handed_over()

    def _forget(self) -> None:
        self._link.close()
        if self._death is not None:
            os.close(self._death)
            self._death = None

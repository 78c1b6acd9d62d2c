"""Standard output (or standard error) of `workron run`, written by a thread of its own.

A reader may be slow, as a pager is. Then only the commands whose output waits are delayed, and
never the heartbeats of their worker. A reader may also be gone, as that of `workron run | head` is
after ten lines. Then everything else is dropped, and `on_close` is called.
"""

from __future__ import annotations

import errno
import os
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Self, TextIO


_ENCODING: Final = "utf-8"


class OutputWriter:
    """Writes the text of a Rich console and the output of jobs, in the order of the calls."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._queue: SimpleQueue[tuple[bytes, Callable[[], None] | None] | None] = SimpleQueue()
        # A daemon: an interrupt must end the process although the reader does not read.
        self._thread = threading.Thread(target=self._run, name="output-writer", daemon=True)
        self._is_line_open = False
        self.encoding = stream.encoding or _ENCODING
        self.on_close: Callable[[], None] | None = None
        """Called on the thread when nothing can be written any more."""
        self.error: OSError | None = None
        """Why nothing can be written any more."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.put(None)
        self._thread.join()

    @property
    def is_closed_by_reader(self) -> bool:
        """Whether the reader has closed the pipe."""
        return self.error is not None and self.error.errno == errno.EPIPE

    def as_file(self) -> IO[str]:
        """Return the writer as the file of a Rich console."""
        return cast("IO[str]", self)

    def write(self, text: str) -> int:
        """Write text of the program; it begins on a line of its own."""
        data = text.encode(self.encoding, errors="replace")
        self._queue.put((b"\n" * self._is_line_open + data, None))
        self._is_line_open = False
        return len(text)

    def write_output(self, data: bytes, done: Callable[[], None]) -> None:
        """Write output of a job, and call `done` on the thread."""
        if data:
            self._is_line_open = not data.endswith(b"\n")
        self._queue.put((data, done))

    def flush(self) -> None:
        """Do nothing: the thread flushes each write."""

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return self._stream.fileno()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            data, done = item
            if self.error is None:
                self._write(data)
            if done is not None:
                done()

    def _write(self, data: bytes) -> None:
        try:
            self._stream.buffer.write(data)
            self._stream.buffer.flush()
        except OSError as error:
            self.error = error
            # Python flushes the stream again at exit, and would report the same error again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            if self.on_close is not None:
                self.on_close()

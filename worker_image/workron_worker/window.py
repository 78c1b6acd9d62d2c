"""How much of one command's output may wait to be dealt with, and a bell for who waits for room.

Made by `local_executor` for a command that somebody hears; `process` takes of it what it reads.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Final, Self

from workron_worker.executor import WINDOW_BYTES

_BELL_BYTES: Final = 1024


class Window:
    """Room for output; taken by the thread that reads, given back from any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = WINDOW_BYTES
        self._is_closed = False
        # A pipe, and no condition: who waits for room has to hear of the command's end as well.
        self._bell, self._rope = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._rope, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_closed = True
            os.close(self._bell)
            os.close(self._rope)

    @property
    def is_shut(self) -> bool:
        """Whether nothing may be read now."""
        return self._left <= 0

    def fileno(self) -> int:
        """Give the descriptor that can be read when there may be room again."""
        return self._bell

    def hush(self) -> None:
        """Take the ringing as heard."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell, _BELL_BYTES)

    def take(self, count: int) -> None:
        """Take room for so many bytes."""
        with self._lock:
            self._left -= count

    def give(self, count: int) -> None:
        """Give room back."""
        with self._lock:
            was_shut, self._left = self.is_shut, self._left + count
            if was_shut and not self.is_shut and not self._is_closed:
                # A bell that nobody has heard for so long still rings.
                with contextlib.suppress(BlockingIOError):
                    os.write(self._rope, b"\0")

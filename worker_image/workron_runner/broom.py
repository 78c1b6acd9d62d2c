"""Removes what attempts left on disk, on a thread beside those that run them.

Called by `scratch` and `orphans`. A disk that others write to can take milliseconds
to remove an empty folder, longer than to start a command and see it end: no slot should stand idle
for that.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import queue
import shutil
import threading
from dataclasses import dataclass
from typing import Final

_MOST_WAITING: Final = 10_000
"""So many attempts may be ahead of their removal; then no other begins, lest the disk fill up."""


@dataclass(frozen=True, slots=True)
class Litter:
    """What one attempt left: its folder, and files that may never have been written."""

    folder: pathlib.Path
    files: tuple[pathlib.Path, ...]


class Broom:
    """A thread that removes what it is given, in order."""

    def __init__(self) -> None:
        # Without a bound: who gives it something has deadlines to keep, and never waits for a disk.
        self._waiting: queue.SimpleQueue[Litter | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._sweep, name="broom", daemon=True)
        self._thread.start()

    @property
    def is_behind(self) -> bool:
        """Whether too much waits to be removed."""
        return self._waiting.qsize() > _MOST_WAITING

    def take(self, litter: Litter) -> None:
        """Remove it soon; under the folder's own name nothing is found from now on."""
        gone = litter.folder.with_name(f"{litter.folder.name}.gone")
        with contextlib.suppress(OSError):
            litter.folder.rename(gone)
        self._waiting.put(Litter(gone, litter.files))

    def close(self) -> None:
        """Return when all is removed."""
        self._waiting.put(None)
        self._thread.join()

    def _sweep(self) -> None:
        while (litter := self._waiting.get()) is not None:
            # What is left all the same goes with the folder around it; a thread that died would
            # have every later attempt wait for ever.
            with contextlib.suppress(Exception):
                _clear(litter)


def remove(path: pathlib.Path) -> None:
    """Remove a tree, also where the command took the right to do so from its folders."""
    with contextlib.suppress(OSError):
        shutil.rmtree(path)
        return
    for directory, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            pathlib.Path(directory).chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)


def _clear(litter: Litter) -> None:
    for path in litter.files:
        with contextlib.suppress(OSError):
            path.unlink()
    try:
        litter.folder.rmdir()
    except OSError:
        remove(litter.folder)

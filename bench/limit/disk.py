"""Measures how fast the disk of this machine writes durably."""

from __future__ import annotations

import os
import pathlib
import tempfile
import time
from typing import Final

from bench.figure import Side

_PAGE: Final = bytes(8192)
_PAGES: Final = 2048
"""16 MiB in all: as the server's log, written over and over in files that have their size."""


def syncing(folder: pathlib.Path, writes: int) -> Side:
    """Write a page of 8 KiB and have it reach the disk, in writes a second."""

    def measure() -> float:
        with tempfile.NamedTemporaryFile(dir=folder, prefix="bench-", buffering=0) as file:
            file.write(_PAGE * _PAGES)
            os.fsync(file.fileno())
            return writes / _seconds(file.fileno(), writes)

    return Side("8 KiB written and fdatasync, one after the other", measure)


def _seconds(file: int, writes: int) -> float:
    began = time.perf_counter()
    for number in range(writes):
        os.pwrite(file, _PAGE, number % _PAGES * len(_PAGE))
        os.fdatasync(file)
    return time.perf_counter() - began

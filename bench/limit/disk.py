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
"""16 MiB in all, overwritten in place, as the server overwrites its log files."""


def syncing(folder: pathlib.Path, writes: int) -> Side:
    """Measure durable writes of an 8 KiB page, in writes a second."""

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

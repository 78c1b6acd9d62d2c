"""Measures how fast this machine starts processes."""

from __future__ import annotations

import os
import shutil
import time
from typing import Final

from bench.figure import Side

TRUE: Final = [shutil.which("true") or "/bin/true"]
SHELL: Final = [shutil.which("sh") or "/bin/sh", "-c", "true"]


def spawning(count: int, *, at_once: int, argv: list[str]) -> Side:
    """Measure starting no-op processes, several at once, and waiting for each."""

    def measure() -> float:
        began = time.perf_counter()
        running = left = 0
        while left < count:
            while running < at_once and left + running < count:
                os.posix_spawn(argv[0], argv, {})
                running += 1
            os.wait()
            running, left = running - 1, left + 1
        return count / (time.perf_counter() - began)

    how = "one after the other" if at_once == 1 else f"{at_once} at once"
    name = " ".join(["sh" if argv is SHELL else "true", *argv[1:]])
    return Side(f"posix_spawn of `{name}` and wait, {how}", measure)

"""A cgroup with a limit of memory, for as long as a test lasts."""

import contextlib
import os
import pathlib
import select
from collections.abc import Iterator

import pytest

from workron_runner import memory

HOG = (
    "import time\nheld = [b'x' * (100 * 2**20)]\n"
    "while True:\n    held.append(b'x' * 2**20)\n    time.sleep(0.01)"
)
"""A program that takes all there is, no faster than a busy machine can look at it."""
_REMOVE_ROUNDS = 1000


@contextlib.contextmanager
def limited(limit: int) -> Iterator[pathlib.Path]:
    """Make one below this process' own; skip where that cannot be done."""
    level = next(memory.cgroup_levels(pathlib.Path("/")), None)
    if level is None:
        pytest.skip("no cgroup here counts memory")
    folder = level.folder / f"workron-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made in {level.folder}: {error.strerror}")
    try:
        try:
            (folder / level.files.limit).write_text(str(limit))
        except OSError as error:
            pytest.skip(f"a new cgroup in {level.folder} gets no limit: {error.strerror}")
        yield folder
    finally:
        _remove(folder)


def _remove(folder: pathlib.Path) -> None:
    # A process that has gone is counted there for a moment longer.
    for _ in range(_REMOVE_ROUNDS):
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        select.select([], [], [], 0.005)
    raise AssertionError(f"{folder} is still in use")

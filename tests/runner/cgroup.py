"""A cgroup with a memory limit for the duration of a test."""

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
"""A program that uses all memory, slowly enough for a busy machine to check it in time."""
_REMOVE_ROUNDS = 1000


@contextlib.contextmanager
def limited(limit: int) -> Iterator[pathlib.Path]:
    """Create one below the cgroup of this process; skip the test where that is not possible."""
    level = next(memory.cgroup_levels(pathlib.Path("/")), None)
    if level is None:
        pytest.skip("no cgroup here counts memory")
    folder = level.folder / f"workron-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"cannot create a cgroup in {level.folder}: {error.strerror}")
    try:
        try:
            (folder / level.files.limit).write_text(str(limit))
        except OSError as error:
            pytest.skip(f"cannot limit a new cgroup in {level.folder}: {error.strerror}")
        yield folder
    finally:
        _remove(folder)


def _remove(folder: pathlib.Path) -> None:
    # A process is counted there for a moment after its end.
    for _ in range(_REMOVE_ROUNDS):
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        select.select([], [], [], 0.005)
    raise AssertionError(f"{folder} is still in use")

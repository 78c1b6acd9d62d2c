"""Uids for commands of a test, and a folder that every uid may pass through."""

import contextlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

from workron_runner.uids import UidRange

_FIRST = 1_000_000 + 16 * os.getpid()
UIDS = UidRange(_FIRST, _FIRST + 15)
"""Used by no user, and by no other test that runs at the same time."""


@contextlib.contextmanager
def traversable_folder() -> Iterator[pathlib.Path]:
    folder = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)

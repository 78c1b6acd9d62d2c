"""Where commands of other uids can run: a folder that all may pass through, and uids for them."""

import contextlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

from workron_runner.uids import UidRange

_FIRST = 1_000_000 + 16 * os.getpid()
UIDS = UidRange(_FIRST, _FIRST + 15)
"""Nobody else's, and no other test's that runs at the same time."""


@contextlib.contextmanager
def passable() -> Iterator[pathlib.Path]:
    folder = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)

"""Clears away what runners that were killed left where this one is about to work.

Called by `__main__` where the runner was started by itself. One that an agent starts leaves that to
the agent, but in a container of its own nobody else sees what is there: a volume keeps the folders
of the runner before, and whoever comes next may give this one the same boot.
"""

from __future__ import annotations

import os
import pathlib
import stat
import tempfile
import uuid

from workron_runner import orphans, scratch


def clear() -> None:
    """End what carries the boot of a runner that is gone, and remove its folder."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob("workron-*"):
        boot = _boot_of(folder)
        if boot is not None and _is_left(folder):
            orphans.end(boot)


def _boot_of(folder: pathlib.Path) -> uuid.UUID | None:
    try:
        boot = uuid.UUID(folder.name.removeprefix("workron-"))
    except ValueError:
        return None
    return boot if scratch.folder(boot) == folder else None


def _is_left(folder: pathlib.Path) -> bool:
    """Whether it is a folder of this user that no runner holds."""
    try:
        there = folder.lstat()
        if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.geteuid():
            return False
        os.close(scratch.locked(folder))
    except OSError:
        return False
    return True

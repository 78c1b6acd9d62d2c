"""Cleans up after a worker or runner that was killed: its processes and its folder.

Every command of a worker has the worker's boot id in its environment (`WORKRON_BOOT`) and starts in
a folder that has the boot id in its name. A process is killed if it carries that variable, or if
its working directory lies in that folder. docs/explanation/lost-workers.md shows when this is used.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import select
import signal
import stat
import tempfile
from typing import Final, NamedTuple
from uuid import UUID

from workron_runner import process_reaper, workspace

_PROC: Final = pathlib.Path("/proc")
_MAX_ROUNDS: Final = 20
"""Each round kills every process that it finds; only a fork bomb survives more than a few."""
_DEATH_TIMEOUT_MILLISECONDS: Final = 1_000


class CleanupResult(NamedTuple):
    """How many processes were killed, and whether none is left."""

    killed: int
    is_complete: bool


def can_read_environments() -> bool:
    """Whether this system shows the environment of processes (in /proc)."""
    return (_PROC / "self/environ").exists()


def clean_up_boot(boot: UUID) -> CleanupResult:
    """Kill every other process of that boot, wait until it is dead, and remove the boot's folder.

    Safe to repeat. It is complete only if a last look at all processes found none.
    """
    killed = 0
    if not can_read_environments():
        return CleanupResult(killed, is_complete=False)
    for _ in range(_MAX_ROUNDS):
        found = [
            pid for pid in process_reaper.list_pids() if pid != os.getpid() and _is_of(pid, boot)
        ]
        if not found:
            workspace.remove_tree(workspace.boot_folder(boot))
            return CleanupResult(killed, is_complete=True)
        killed += sum(_kill(pid, boot) for pid in found)
    return CleanupResult(killed, is_complete=False)


def clean_up_lost_runners() -> None:
    """Clean up after every runner of this user that died: its folder is no longer locked."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob("workron-*"):
        try:
            boot = UUID(folder.name.removeprefix("workron-"))
        except ValueError:
            continue
        if workspace.boot_folder(boot) == folder and _is_abandoned(folder):
            clean_up_boot(boot)


def _kill(pid: int, boot: UUID) -> bool:
    with contextlib.suppress(OSError):
        pidfd = os.pidfd_open(pid)
        try:
            # Checked again: before the pidfd was open the pid may have been reused.
            if _is_of(pid, boot):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                poller = select.poll()
                poller.register(pidfd, select.POLLIN)
                return bool(poller.poll(_DEATH_TIMEOUT_MILLISECONDS))
        finally:
            os.close(pidfd)
    return False


def _is_of(pid: int, boot: UUID) -> bool:
    variable = f"{workspace.BOOT_VARIABLE}={boot}".encode()
    with contextlib.suppress(OSError):
        if variable in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            return True
    with contextlib.suppress(OSError):
        directory = (_PROC / str(pid) / "cwd").readlink()
        return workspace.boot_folder(boot) in directory.parents
    return False


def _is_abandoned(folder: pathlib.Path) -> bool:
    """Whether it is a folder of this user that no running runner has locked."""
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        os.close(workspace.lock_folder(folder))
    except OSError:
        return False
    return True

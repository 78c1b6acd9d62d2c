"""Finds what an attempt's command left running, whatever group, session or parent it moved to.

Called by `crowd`, `hands` and `runner`, and by `uids` and `usage` for what it knows of processes.
The runner is a subreaper, so what loses its parent becomes its child; and its
commands are started by threads of their own (`hands`), so that these orphans are the only children
of the first thread, and one system call tells whether there are any. Whose they are is told by a
mark that every process inherits and that it can neither see nor take off by clearing its
environment or leaving its session: the limit of file locks, which the kernel has ignored since
Linux 2.4.25 and hands on all the same. It is lowered by one for each attempt, and nobody without
privileges can raise it again.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
import select
import signal
import stat
import tempfile
import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

from workron_runner import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID


_PROC: Final = pathlib.Path("/proc")
_RLIMIT_LOCKS: Final = 10
_HIGHEST_MARK: Final = 2**62
_WNOTHREAD: Final = 0x20000000
_LOOK: Final = os.WEXITED | os.WNOHANG | os.WNOWAIT | _WNOTHREAD
_PARENT_FIELD: Final = 1
"""Where `/proc/PID/stat` has the parent, counted from behind the command's name."""


class StrayProcess(NamedTuple):
    """A child that came to the runner when it lost its parent."""

    pid: int
    mark: int


class AttemptMarks:
    """Draws the marks of attempts, and has the next command inherit one."""

    def __init__(self) -> None:
        _, highest = resource.getrlimit(_RLIMIT_LOCKS)
        self._last = _HIGHEST_MARK if highest == resource.RLIM_INFINITY else highest

    def put_on(self) -> int:
        """Put a new mark on this process, for the next command to inherit."""
        self._last -= 1
        resource.setrlimit(_RLIMIT_LOCKS, (self._last, self._last))
        return self._last


def can_find_strays() -> bool:
    """Whether the first thread has children; only it may ask."""
    try:
        os.waitid(os.P_ALL, 0, _LOOK)
    except ChildProcessError:
        return False
    return True


def find_strays() -> Iterator[StrayProcess]:
    """Give the children of the first thread; only it may ask."""
    own = str(os.getpid()).encode()
    for pid in pids():
        if _parent(pid) == own and _is_own(pid):
            yield StrayProcess(pid, mark(pid))


def end_stray(stray: StrayProcess) -> int:
    """Kill a stray; its peak of memory in bytes if it is dead and gone, else -1."""
    # It is our child and nobody else reaps it: its number cannot become another's before that.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(stray.pid, signal.SIGKILL)
    return reap(stray.pid)


def reap(pid: int) -> int:
    """Take the remains of a stray away, if it has ended; its peak of memory in bytes, else -1."""
    try:
        reaped, _, usage = os.wait4(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return usage.ru_maxrss * 1024 if reaped else -1


def _is_own(pid: int) -> bool:
    # The commands are children of this process too, but of other threads.
    try:
        os.waitid(os.P_PID, pid, _LOOK)
    except ChildProcessError:
        return False
    return True


def pids() -> Iterator[int]:
    """Give all processes that are seen from here."""
    with os.scandir(_PROC) as entries:
        yield from (int(entry.name) for entry in entries if entry.name.isdecimal())


def _parent(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return fields[_PARENT_FIELD]
    return b""


def mark(pid: int) -> int:
    """Read the mark that a process bears, 0 if there is none."""
    with contextlib.suppress(OSError):
        for line in (_PROC / str(pid) / "limits").read_bytes().splitlines():
            if line.startswith(b"Max file locks"):
                limit = line.split()[4]
                return int(limit) if limit.isdigit() else 0
    return 0


_ORPHANS_PROC: Final = pathlib.Path("/proc")
_ROUNDS: Final = 20
"""Each round ends all that it sees; only something that forks as fast lasts longer than a few."""
_DEATH_MILLISECONDS: Final = 1_000


class SweepResult(NamedTuple):
    """How many processes were ended, and whether none is left."""

    ended: int
    is_clear: bool


def can_be_found() -> bool:
    """Whether this system lets the environment of processes be read."""
    return (_ORPHANS_PROC / "self/environ").exists()


def end_orphans(boot: UUID) -> SweepResult:
    """Kill every process of that boot but this one, wait for its death, and remove its folder."""
    ended = 0
    if not can_be_found():
        return SweepResult(ended, is_clear=False)
    for _ in range(_ROUNDS):
        found = [pid for pid in _pids() if pid != os.getpid() and _carries(pid, boot)]
        if not found:
            workspace.remove_folder(workspace.workspace_folder(boot))
            return SweepResult(ended, is_clear=True)
        ended += sum(_kill(pid, boot) for pid in found)
    return SweepResult(ended, is_clear=False)


def _pids() -> Iterator[int]:
    with contextlib.suppress(OSError), os.scandir(_ORPHANS_PROC) as entries:
        yield from (int(entry.name) for entry in entries if entry.name.isdecimal())


def _kill(pid: int, boot: UUID) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # Looked at again: before the descriptor held it, the number may have become another's.
        if not _carries(pid, boot):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return _has_died(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _has_died(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(_DEATH_MILLISECONDS))


def _carries(pid: int, boot: UUID) -> bool:
    mark = f"{workspace.BOOT_VARIABLE}={boot}".encode()
    with contextlib.suppress(OSError):
        if mark in (_ORPHANS_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            return True
    with contextlib.suppress(OSError):
        where = (_ORPHANS_PROC / str(pid) / "cwd").readlink()
        return workspace.workspace_folder(boot) in where.parents
    return False


def clear_leftovers() -> None:
    """End what carries the boot of a runner that is gone, and remove its folder."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob("workron-*"):
        boot = _boot_of(folder)
        if boot is not None and _is_left(folder):
            end_orphans(boot)


def _boot_of(folder: pathlib.Path) -> uuid.UUID | None:
    try:
        boot = uuid.UUID(folder.name.removeprefix("workron-"))
    except ValueError:
        return None
    return boot if workspace.workspace_folder(boot) == folder else None


def _is_left(folder: pathlib.Path) -> bool:
    """Whether it is a folder of this user that no runner holds."""
    try:
        there = folder.lstat()
        if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.geteuid():
            return False
        os.close(workspace.locked_folders(folder))
    except OSError:
        return False
    return True

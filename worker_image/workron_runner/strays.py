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
import signal
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROC: Final = pathlib.Path("/proc")
_RLIMIT_LOCKS: Final = 10
_HIGHEST_MARK: Final = 2**62
_WNOTHREAD: Final = 0x20000000
_LOOK: Final = os.WEXITED | os.WNOHANG | os.WNOWAIT | _WNOTHREAD
_PARENT_FIELD: Final = 1
"""Where `/proc/PID/stat` has the parent, counted from behind the command's name."""


class Stray(NamedTuple):
    """A child that came to the runner when it lost its parent."""

    pid: int
    mark: int


class Marks:
    """Draws the marks of attempts, and has the next command inherit one."""

    def __init__(self) -> None:
        _, highest = resource.getrlimit(_RLIMIT_LOCKS)
        self._last = _HIGHEST_MARK if highest == resource.RLIM_INFINITY else highest

    def put_on(self) -> int:
        """Put a new mark on this process, for the next command to inherit."""
        self._last -= 1
        resource.setrlimit(_RLIMIT_LOCKS, (self._last, self._last))
        return self._last


def are_there() -> bool:
    """Whether the first thread has children; only it may ask."""
    try:
        os.waitid(os.P_ALL, 0, _LOOK)
    except ChildProcessError:
        return False
    return True


def find() -> Iterator[Stray]:
    """Give the children of the first thread; only it may ask."""
    own = str(os.getpid()).encode()
    for pid in pids():
        if _parent(pid) == own and _is_own(pid):
            yield Stray(pid, mark(pid))


def end(stray: Stray) -> int:
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

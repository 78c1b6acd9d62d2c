"""Finds, kills and reaps the processes that a command leaves behind.

The runner is a child subreaper: a process whose parent exits becomes its child, whatever process
group or session it moved to. Commands are started by threads of their own (`launcher`), so such
leftover processes are the only children of the first thread, and one system call (`waitid` with
`__WNOTHREAD`) shows whether any exist. Only the first thread may call these functions.

A *tag* names the attempt that a leftover process belongs to. Every process inherits it, and neither
a cleared environment nor a new session removes it: it is the soft and hard limit of file locks
(RLIMIT_LOCKS), which Linux has not enforced since 2.4.25 and still passes on. The limit is lowered
by one for each attempt; a process without privileges cannot raise it again.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
import signal
from collections.abc import Iterator
from typing import Final

_PROC: Final = pathlib.Path("/proc")
_RLIMIT_LOCKS: Final = 10
_HIGHEST_TAG: Final = 2**62
_WNOTHREAD: Final = 0x20000000
_PEEK: Final = os.WEXITED | os.WNOHANG | os.WNOWAIT | _WNOTHREAD


class AttemptTags:
    """Creates tags and sets them on this process, for the next command to inherit."""

    def __init__(self) -> None:
        _, highest = resource.getrlimit(_RLIMIT_LOCKS)
        self._last = _HIGHEST_TAG if highest == resource.RLIM_INFINITY else highest

    def set_next(self) -> int:
        """Set a new tag on this process and return it."""
        self._last -= 1
        resource.setrlimit(_RLIMIT_LOCKS, (self._last, self._last))
        return self._last


def has_leftover_processes() -> bool:
    """Whether the first thread has children."""
    return _is_child_of_this_thread(os.P_ALL, 0)


def leftover_processes() -> Iterator[tuple[int, int]]:
    """Yield pid and tag of each process that became a child of the runner by its parent's exit."""
    own = str(os.getpid()).encode()
    for pid in list_pids():
        # Commands are children of this process too, but of other threads.
        if _parent(pid) == own and _is_child_of_this_thread(os.P_PID, pid):
            yield pid, read_tag(pid)


def kill_leftover(pid: int) -> int:
    """Kill a leftover process; its peak memory in bytes if it is reaped already, else -1."""
    # It is our child and no other process reaps it, so its pid cannot be reused before that.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    return reap(pid)


def reap(pid: int) -> int:
    """Reap a child if it has exited; its peak memory in bytes, or -1 if it still runs."""
    try:
        reaped, _, usage = os.wait4(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return usage.ru_maxrss * 1024 if reaped else -1


def list_pids() -> Iterator[int]:
    """Yield the processes that are visible here; none without /proc."""
    with contextlib.suppress(OSError), os.scandir(_PROC) as entries:
        yield from (int(entry.name) for entry in entries if entry.name.isdecimal())


def read_tag(pid: int) -> int:
    """Read the tag of a process, 0 if it has none."""
    with contextlib.suppress(OSError):
        for line in (_PROC / str(pid) / "limits").read_bytes().splitlines():
            if line.startswith(b"Max file locks"):
                limit = line.split()[4]
                return int(limit) if limit.isdigit() else 0
    return 0


def _is_child_of_this_thread(id_type: int, pid: int) -> bool:
    try:
        os.waitid(id_type, pid, _PEEK)
    except ChildProcessError:
        return False
    return True


def _parent(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        # Behind the command's name, which may contain anything, come the state and the parent.
        return (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1]
    return b""

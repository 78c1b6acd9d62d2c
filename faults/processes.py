"""The descendants of a process, read from /proc.

The test session adopts orphans, as an init process does. So every process of a worker is found
among its descendants, even if it left its session, environment or parent.
"""

import contextlib
import ctypes
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

_PROC = pathlib.Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36


class Process(NamedTuple):
    """A process that was found in /proc."""

    pid: int
    parent: int
    state: str
    command: str

    @property
    def directory(self) -> pathlib.Path | None:
        """Its working directory; None if that cannot be read."""
        with contextlib.suppress(OSError):
            return (_PROC / str(self.pid) / "cwd").readlink()
        return None


def become_subreaper() -> None:
    """Become the parent of every descendant that loses its own."""
    assert ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def descendants(root: int) -> list[Process]:
    """List the running descendants of a process, parents before children."""
    below: dict[int, list[Process]] = {}
    for one in _all():
        below.setdefault(one.parent, []).append(one)
    found, level = [], [root]
    while level:
        children = [child for parent in level for child in below.get(parent, [])]
        found += children
        level = [child.pid for child in children]
    return [one for one in found if one.state not in "ZX"]


def is_alive(pid: int) -> bool:
    """Whether a process runs or is stopped, and is not a zombie."""
    one = _read(pid)
    return one is not None and one.state not in "ZX"


def peak_bytes(pid: int) -> int:
    """Return the peak memory of a process."""
    for line in (_PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{pid} has no memory: it has exited")


def open_sockets(pid: int) -> int:
    """Count the sockets that a process has open."""
    count = 0
    for one in (_PROC / str(pid) / "fd").iterdir():
        with contextlib.suppress(OSError):
            count += str(one.readlink()).startswith("socket:")
    return count


def reap() -> None:
    """Reap adopted zombies; no other code waits for children of this process any more."""
    for one in _all():
        if one.parent == os.getpid() and one.state == "Z":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(one.pid, os.WNOHANG)


def _all() -> Iterator[Process]:
    with os.scandir(_PROC) as entries:
        for entry in entries:
            if entry.name.isdecimal() and (one := _read(int(entry.name))):
                yield one


def _read(pid: int) -> Process | None:
    with contextlib.suppress(OSError):
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
        words = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ")
        fields = stat.rpartition(")")[2].split()
        return Process(pid, int(fields[1]), fields[0], words.decode(errors="replace").strip())
    return None

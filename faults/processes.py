"""What runs on this machine below one process, read from /proc.

A session of tests takes in what loses its parent, as an init process would. So whatever a worker
starts is found among its descendants, whichever session, environment or parent it has left.
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
    """One that runs, or is stopped; not one of which only the remains are left."""

    pid: int
    parent: int
    state: str
    command: str

    @property
    def directory(self) -> pathlib.Path | None:
        """Where it is; None if that cannot be read."""
        with contextlib.suppress(OSError):
            return (_PROC / str(self.pid) / "cwd").readlink()
        return None


def take_in_orphans() -> None:
    """Become the parent of every descendant that loses its own."""
    assert ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def descendants(root: int) -> list[Process]:
    """List what runs below a process, parents before children."""
    below: dict[int, list[Process]] = {}
    for one in _all():
        below.setdefault(one.parent, []).append(one)
    found, front = [], [root]
    while front:
        children = [child for parent in front for child in below.get(parent, [])]
        found += children
        front = [child.pid for child in children]
    return [one for one in found if one.state not in "ZX"]


def is_alive(pid: int) -> bool:
    """Whether it runs or is stopped."""
    one = _look(pid)
    return one is not None and one.state not in "ZX"


def peak_bytes(pid: int) -> int:
    """Tell how much memory a process has had at most."""
    for line in (_PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{pid} has no memory: it is gone")


def open_sockets(pid: int) -> int:
    """Count the sockets that a process has open."""
    count = 0
    for one in (_PROC / str(pid) / "fd").iterdir():
        with contextlib.suppress(OSError):
            count += str(one.readlink()).startswith("socket:")
    return count


def bury() -> None:
    """Take away the remains of what was taken in; nobody waits for children of our own by now."""
    for one in _all():
        if one.parent == os.getpid() and one.state == "Z":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(one.pid, os.WNOHANG)


def _all() -> Iterator[Process]:
    with os.scandir(_PROC) as entries:
        for entry in entries:
            if entry.name.isdecimal() and (one := _look(int(entry.name))):
                yield one


def _look(pid: int) -> Process | None:
    with contextlib.suppress(OSError):
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
        words = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ")
        fields = stat.rpartition(")")[2].split()
        return Process(pid, int(fields[1]), fields[0], words.decode(errors="replace").strip())
    return None

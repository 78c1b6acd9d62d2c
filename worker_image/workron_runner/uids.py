"""Uids for attempts: one per command, acquired only when no process runs as it (`--uids`).

A process can change its session, environment, parents or limits, but it keeps its uid, so killing
by uid finds every process of a command. docs/decisions/0013 explains why some system calls bypass
the C library.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import pathlib
import signal
import time
from collections import deque
from typing import Final, NamedTuple

from workron_runner import event_loop, process_reaper
from workron_runner.workspace import WorkspaceError

_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)
_SETRESUID: Final = {"x86_64": 117, "aarch64": 147, "riscv64": 147}
"""Number of the system call. It changes this thread only; the C library would change them all."""
_CAPABILITY_VERSION_3: Final = 0x20080522
_DEATH_TIMEOUT_SECONDS: Final = 1


class UidRange(NamedTuple):
    """The uids from first to last, both included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> UidRange:
        """Parse `FIRST-LAST`; ValueError if malformed, shorter than two, or containing root."""
        first, _, last = text.partition("-")
        parsed = cls(int(first), int(last))
        if not 0 < parsed.first < parsed.last < 2**32 - 1:
            raise ValueError(text)
        return parsed

    @property
    def size(self) -> int:
        """The number of uids."""
        return self.last - self.first + 1

    def __str__(self) -> str:
        """Format it as `parse` reads it."""
        return f"{self.first}-{self.last}"


class UidPool:
    """The free uids of a range, the least recently used first.

    The first uid of the range is reserved as the real uid of the runner while it kills others.
    """

    def __init__(self, uid_range: UidRange) -> None:
        self._range = uid_range
        self._free = deque(range(uid_range.first + 1, uid_range.last + 1))

    def acquire(self) -> int:
        """Take a uid that no process has; WorkspaceError if there is none."""
        for _ in range(len(self._free)):
            uid = self._free.popleft()
            if not is_used(uid):
                return uid
            self._free.append(uid)
        raise WorkspaceError(f"no uid of {self._range} is free for another command")

    def release(self, uid: int) -> None:
        """Return a uid to the pool."""
        self._free.append(uid)

    def kill(self, uid: int) -> bool:
        """Kill every process of that uid in one step; whether there was any.

        `kill(-1)` signals everything that the sender may signal, atomically, so no fork escapes it.
        A sender may signal processes whose uid is its real or its effective one; therefore the real
        uid is one that nothing else has. The processes cannot kill the sender in turn: they would
        need its real uid.
        """
        if not is_used(uid):
            return False
        try:
            _set_uids(self._range.first, uid, 0)
            _require_uids_without_capabilities(self._range.first, uid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        finally:
            _set_uids(0, 0, 0)
        return True

    def kill_all(self) -> None:
        """Kill every process of all uids, and wait for a bounded time until they are dead."""
        until = event_loop.boottime() + _DEATH_TIMEOUT_SECONDS
        left = [uid for uid in self._free if self.kill(uid)]
        # Zombies do not count: they may wait long until another process reaps them.
        while (left := [uid for uid in left if _is_alive(uid)]) and event_loop.boottime() < until:
            time.sleep(0.001)


def is_used(uid: int) -> bool:
    """Whether any process has that uid, zombies included."""
    try:
        os.getpriority(os.PRIO_USER, uid)
    except ProcessLookupError:
        return False
    return True


def is_supported() -> bool:
    """Whether the number of the system call is known for this machine type."""
    return os.uname().machine in _SETRESUID


def _is_alive(uid: int) -> bool:
    for pid in process_reaper.list_pids():
        with contextlib.suppress(OSError):
            status = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace")
            if f"\nUid:\t{uid}\t" in status and "\nState:\tZ" not in status:
                return True
    return False


def _set_uids(real: int, effective: int, saved: int) -> None:
    call = _SETRESUID[os.uname().machine]
    if _LIBRARY.syscall(call, *map(ctypes.c_uint32, (real, effective, saved))) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"setresuid {effective}: {os.strerror(number)}")


def _require_uids_without_capabilities(real: int, effective: int) -> None:
    """Check that a signal to all reaches only these uids; OSError otherwise."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    is_known = _LIBRARY.capget(header, data) == 0
    has_capabilities = bool(data[0] or data[3])
    is_other = 0 in (real, effective) or _current_uids() != (real, effective)
    if not is_known or has_capabilities or is_other:
        raise OSError(errno.EPERM, f"uid {effective} cannot be killed alone")


def _current_uids() -> tuple[int, int]:
    return os.getuid(), os.geteuid()

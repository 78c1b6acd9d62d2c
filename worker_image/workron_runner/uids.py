"""Uids that attempts have for themselves: drawn one by one, and cleared of all that runs as them.

Called by `runner` and `crowd`, where the runner was started with `--uids`. Whatever a process does
to its session, environment, parents or limits, its uid stays: nothing that it starts gets rights
that it lacks. docs/decisions/0013 says why some of this is asked of Linux past the C library.
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

_SETRESUID: Final = {"x86_64": 117, "aarch64": 147, "riscv64": 147}
"""The number of the system call; of this one thread alone, where the C library changes them all."""
_CAPABILITIES_3: Final = 0x20080522
_DEATH_SECONDS: Final = 1


class Range(NamedTuple):
    """The uids from the first to the last."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Range:
        """Read `FIRST-LAST`; ValueError if it is none, has fewer than two, or has root in it."""
        first, _, last = text.partition("-")
        one = cls(int(first), int(last))
        if not 0 < one.first < one.last < 2**32 - 1:
            raise ValueError(text)
        return one

    @property
    def size(self) -> int:
        """How many there are."""
        return self.last - self.first + 1

    def __str__(self) -> str:
        """Write it as it is read."""
        return f"{self.first}-{self.last}"


class Uids:
    """Those of a range that are free, the one that has rested longest first."""

    def __init__(self, range_: Range) -> None:
        self._range = range_
        self._own = range_.first
        self._free = deque(range(range_.first + 1, range_.last + 1))

    def draw(self) -> int:
        """Take one that nothing runs as; ScratchError if there is none."""
        for _ in range(len(self._free)):
            uid = self._free.popleft()
            if not is_used(uid):
                return uid
            self._free.append(uid)
        raise WorkspaceError(f"no uid of {self._range} is free for another command")

    def give_back(self, uid: int) -> None:
        """Let it rest, and then be another's."""
        self._free.append(uid)

    def end(self, uid: int) -> bool:
        """Kill all that runs as that uid, at one blow; whether there was anything.

        Linux signals whatever a sender may signal in one step, which no fork can slip through. A
        sender may signal whose uid is its real or its effective one; so the real one is nobody's,
        and not root. And what it is about to kill cannot kill it: that would take its real uid.
        """
        if not is_used(uid):
            return False
        try:
            _become(self._own, uid, 0)
            _expect_no_more_than(self._own, uid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        finally:
            _become(0, 0, 0)
        return True

    def end_all(self) -> None:
        """Kill all that runs as any of them, and wait for its death, but not for ever."""
        until = event_loop.clock_now() + _DEATH_SECONDS
        left = [one for one in self._free if self.end(one)]
        # Whoever is dead waits here to be taken away by somebody else, and maybe for long.
        while (left := [one for one in left if _is_alive(one)]) and event_loop.clock_now() < until:
            time.sleep(0.001)


def is_used(uid: int) -> bool:
    """Whether any process has that uid, one that has ended and was not yet taken away included."""
    try:
        os.getpriority(os.PRIO_USER, uid)
    except ProcessLookupError:
        return False
    return True


def _is_alive(uid: int) -> bool:
    return any(_is_it(pid, uid) for pid in process_reaper.pids())


def _is_it(pid: int, uid: int) -> bool:
    with contextlib.suppress(OSError):
        status = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace")
        return f"\nUid:\t{uid}\t" in status and "\nState:\tZ" not in status
    return False


def _become(real: int, effective: int, saved: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    call = _SETRESUID[os.uname().machine]
    if library.syscall(call, *map(ctypes.c_uint32, (real, effective, saved))) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"setresuid {effective}: {os.strerror(number)}")


def _expect_no_more_than(real: int, effective: int) -> None:
    """Make sure that a signal to all reaches these uids alone: no doubt is small enough for it."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    data = (ctypes.c_uint32 * 6)()
    library = ctypes.CDLL(None, use_errno=True)
    is_known = library.capget(header, data) == 0
    has_powers = bool(data[0] or data[3])
    if not is_known or has_powers or 0 in (real, effective) or _ids() != (real, effective):
        raise OSError(errno.EPERM, f"uid {effective} cannot be ended alone")


def _ids() -> tuple[int, int]:
    return os.getuid(), os.geteuid()


def is_known_here() -> bool:
    """Whether this kind of machine is one whose system calls are known."""
    return os.uname().machine in _SETRESUID

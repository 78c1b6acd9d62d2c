"""Ends what a killed worker's commands left running, and removes their folders.

Every process of an attempt inherits the boot of its worker in its environment, and most keep its
folder as their own; either tells them from all others, whatever group or session they moved to.
Called by `workron.cli` before the claims of a dead worker of this machine are taken back, by
`remains` for every dead runner that left its folder, and in `workron_worker` by `roster` for every
dead worker that left a note, and wherever a runner is lost or closed.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import select
import signal
from typing import TYPE_CHECKING, Final, NamedTuple

from workron_runner import broom, scratch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

_PROC: Final = pathlib.Path("/proc")
_ROUNDS: Final = 20
"""Each round ends all that it sees; only something that forks as fast lasts longer than a few."""
_DEATH_MILLISECONDS: Final = 1_000


class Swept(NamedTuple):
    """How many processes were ended, and whether none is left."""

    ended: int
    is_clear: bool


def can_be_found() -> bool:
    """Whether this system lets the environment of processes be read."""
    return (_PROC / "self/environ").exists()


def end(boot: UUID) -> Swept:
    """Kill every process of that boot but this one, wait for its death, and remove its folder."""
    ended = 0
    if not can_be_found():
        return Swept(ended, is_clear=False)
    for _ in range(_ROUNDS):
        found = [pid for pid in _pids() if pid != os.getpid() and _carries(pid, boot)]
        if not found:
            broom.remove(scratch.folder(boot))
            return Swept(ended, is_clear=True)
        ended += sum(_kill(pid, boot) for pid in found)
    return Swept(ended, is_clear=False)


def _pids() -> Iterator[int]:
    with contextlib.suppress(OSError), os.scandir(_PROC) as entries:
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
    mark = f"{scratch.BOOT_VARIABLE}={boot}".encode()
    with contextlib.suppress(OSError):
        if mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            return True
    with contextlib.suppress(OSError):
        where = (_PROC / str(pid) / "cwd").readlink()
        return scratch.folder(boot) in where.parents
    return False

"""Tells which attempt uses most memory, over all its processes.

Called by `crowd`, when memory runs short.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from typing import TYPE_CHECKING, Final, NamedTuple

from workron_runner import strays

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from workron_runner.attempt import Attempt

_PROC: Final = pathlib.Path("/proc")
_OWN: Final = (b"RssAnon", b"RssShmem")
_SHARES: Final = (b"Pss_Anon", b"Pss_Shmem")


class _Process(NamedTuple):
    parent: int
    uid: int
    resident: int
    """Bytes that are no file's; what it shares with a process that it forked is counted whole."""


class Use(NamedTuple):
    """An attempt and the bytes that its processes hold."""

    attempt: Attempt
    resident: int


def largest(attempts: Iterable[Attempt]) -> Use | None:
    """Find the attempt whose processes hold most."""
    processes = {pid: one for pid in strays.pids() if (one := _read(pid))}
    held = _by_attempt(list(attempts), processes)
    sums = {one: sum(processes[pid].resident for pid in pids) for one, pids in held.items()}
    best: Use | None = None
    # To share out costs much more than to sum up, and can only make less of it.
    for attempt in sorted(sums, key=lambda one: sums[one], reverse=True):
        if best and best.resident >= sums[attempt]:
            break
        use = Use(attempt, min(sums[attempt], _shared_out(held[attempt], processes)))
        best = max(best, use, key=lambda one: one.resident) if best else use
    return best


def _by_attempt(
    attempts: list[Attempt], processes: Mapping[int, _Process]
) -> dict[Attempt, list[int]]:
    held: dict[Attempt, list[int]] = {one: [] for one in attempts}
    commands = {one.pid: one for one in attempts}
    uids = {one.uid: one for one in attempts if one.uid is not None}
    marks = {one.mark: one for one in attempts}
    for pid, process in processes.items():
        top = _top(pid, processes)
        owner = uids.get(process.uid) or commands.get(top) or marks.get(strays.mark(top))
        if owner:
            held[owner].append(pid)
    return held


def _top(pid: int, processes: Mapping[int, _Process]) -> int:
    """Go up to the child of this process that it comes from; 0 if it is none of ours."""
    own = os.getpid()
    while pid in processes:
        if processes[pid].parent == own:
            return pid
        pid = processes[pid].parent
    return 0


def _shared_out(pids: list[int], processes: Mapping[int, _Process]) -> int:
    if len(pids) == 1:
        return processes[pids[0]].resident
    return sum(_share(pid, processes[pid].resident) for pid in pids)


def _share(pid: int, resident: int) -> int:
    """Count what several processes share once; as resident where that cannot be seen."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        _, _, table = (_PROC / str(pid) / "smaps_rollup").read_bytes().partition(b"\n")
        return _sum(_fields(table), _SHARES)
    return resident


def _read(pid: int) -> _Process | None:
    with contextlib.suppress(OSError, ValueError, IndexError, KeyError):
        fields = _fields((_PROC / str(pid) / "status").read_bytes())
        uid = int(fields[b"Uid"].split()[0])
        return _Process(int(fields[b"PPid"]), uid, _sum(fields, _OWN))
    return None


def _fields(table: bytes) -> dict[bytes, bytes]:
    rows = (line.partition(b":") for line in table.splitlines())
    return {name: value for name, _, value in rows}


def _sum(fields: Mapping[bytes, bytes], names: tuple[bytes, ...]) -> int:
    return sum(int(fields[name].split()[0]) for name in names if name in fields) * 1024

"""Ends an attempt before the memory limit of the cgroup is reached.

When a cgroup reaches its limit, Linux kills a process of its choice, which may be the runner or the
agent. Therefore, while commands run, `MemoryMonitor` compares the *headroom* of the cgroup with a
margin, and the supervisor kills the attempt that uses most when the headroom is below it:

    headroom = limit - (used - reclaimable) + swap that may still be used
    margin   = 5 % of the limit, at least 32 MiB, at most a quarter of the limit

The next check comes after the time in which commands could use the headroom at 4 GiB/s. A limit may
be set at any level above this process, so all visible levels are read and the tightest counts. Both
versions of cgroups are supported. If Linux was faster, its own count of kills shows it.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from workron_runner import event_loop, process_reaper
from workron_runner.attempt import AttemptProcess

_NO_LIMIT: Final = 2**60
"""Version 1 writes "no limit" as the largest number of whole pages."""


class _CgroupFiles(NamedTuple):
    """The names of files and fields in one version of cgroups."""

    file_system: str
    limit: str
    used: str
    reclaimable: tuple[str, ...]
    """Fields of `memory.stat`."""
    kills: str
    swap_limit: str
    swap_used: str
    is_swap_only: bool
    """Whether the last two count swap only, or memory and swap together."""


_FILES: Final = {
    2: _CgroupFiles(
        "cgroup2",
        "memory.max",
        "memory.current",
        ("inactive_file", "active_file", "slab_reclaimable"),
        "memory.events",
        "memory.swap.max",
        "memory.swap.current",
        is_swap_only=True,
    ),
    1: _CgroupFiles(
        "cgroup",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
        "memory.oom_control",
        "memory.memsw.limit_in_bytes",
        "memory.memsw.usage_in_bytes",
        is_swap_only=False,
    ),
}


class Headroom(NamedTuple):
    """A limit and how many bytes are left below it."""

    limit: int
    left: float


@dataclass(frozen=True, slots=True)
class CgroupLevel:
    """One cgroup that this process is in."""

    folder: pathlib.Path
    files: _CgroupFiles

    @property
    def limit(self) -> float:
        """The memory limit in bytes, infinite if there is none."""
        return _read_number(self.folder / self.files.limit)

    def headroom(self, swap_free: int) -> Headroom | None:
        """Read the headroom; None without a limit, or if it cannot be read."""
        limit = self.limit
        if limit == inf:
            return None
        stat = _read_table(self.folder / "memory.stat")
        reclaimable = sum(stat.get(name, 0) for name in self.files.reclaimable)
        used = _read_number(self.folder / self.files.used) - reclaimable
        # Nothing is killed for a file that cannot be read.
        if used == inf:
            return None
        return Headroom(int(limit), limit - used + self._swap_left(limit, swap_free))

    def _swap_left(self, limit: float, swap_free: int) -> float:
        if not swap_free:
            return 0
        allowed = _read_number(self.folder / self.files.swap_limit)
        used = _read_number(self.folder / self.files.swap_used)
        if not self.files.is_swap_only:
            allowed -= limit
            used -= _read_number(self.folder / self.files.used)
        return max(0, min(allowed - used, swap_free))


class CgroupMemory:
    """The levels that have a limit, and the process's own one, where Linux counts its kills."""

    def __init__(self, own: CgroupLevel, limited: list[CgroupLevel], root: pathlib.Path) -> None:
        self._own = own
        self._limited = limited
        self._swaps = root / "proc/swaps"
        self._meminfo = root / "proc/meminfo"

    def headroom(self) -> Headroom | None:
        """Read the smallest headroom of all levels."""
        swap_free = self._swap_free()
        found = [one for level in self._limited if (one := level.headroom(swap_free))]
        return min(found, key=lambda one: one.left, default=None)

    def oom_kills(self) -> int:
        """Read how many processes Linux has killed for memory."""
        return _read_table(self._own.folder / self._own.files.kills).get("oom_kill", 0)

    def _swap_free(self) -> int:
        lines = self._swaps.read_text().splitlines() if self._swaps.exists() else []
        # The first line is a header.
        return _read_table(self._meminfo).get("SwapFree:", 0) * 1024 if len(lines) > 1 else 0


def find_memory(root: pathlib.Path = pathlib.Path("/")) -> CgroupMemory | None:
    """Find what limits the memory of this process; None if nothing does."""
    levels = list(cgroup_levels(root))
    limited = [level for level in levels if level.limit < inf]
    return CgroupMemory(levels[0], limited, root) if limited else None


def cgroup_levels(root: pathlib.Path) -> Iterator[CgroupLevel]:
    """Yield the cgroups that count the memory of this process, its own one first."""
    with contextlib.suppress(OSError, ValueError):
        version, path = _own_cgroup(root)
        top, mount = _find_mount(root, version)
        folder = mount / path.removeprefix(top.rstrip("/")).strip("/")
        # In a container the path may be the one on the host while the mount is the cgroup itself.
        if not folder.is_dir():
            folder = mount
        files = _FILES[version]
        for one in [folder, *folder.parents]:
            if one.is_relative_to(mount) and (one / files.used).exists():
                yield CgroupLevel(one, files)


def _own_cgroup(root: pathlib.Path) -> tuple[int, str]:
    """Return version and path of the own cgroup; version 1 if it has the memory controller."""
    lines = (root / "proc/self/cgroup").read_text().splitlines()
    rows = [line.split(":", 2) for line in lines]
    for _, controllers, path in rows:
        if "memory" in controllers.split(","):
            return 1, path
    return 2, next((path for number, _, path in rows if number == "0"), "/")


def _find_mount(root: pathlib.Path, version: int) -> tuple[str, pathlib.Path]:
    """Return which cgroup is mounted for that version, and where."""
    for line in (root / "proc/self/mountinfo").read_text().splitlines():
        mounted, _, source = line.partition(" - ")
        type_, _, options = source.split(" ", 2)
        if type_ == _FILES[version].file_system and (version > 1 or "memory" in options.split(",")):
            top, mount = mounted.split()[3:5]
            return top, root / mount.lstrip("/")
    raise ValueError(f"no cgroup of version {version} is mounted")


def _read_number(path: pathlib.Path) -> float:
    try:
        number = int(path.read_text())
    except (OSError, ValueError):
        # Missing in the root cgroup, and the word `max` in version 2.
        return inf
    return number if number < _NO_LIMIT else inf


def _read_table(path: pathlib.Path) -> dict[str, int]:
    """Read the rows that are a name and a number; none if the file cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        # A process may have any bytes in its name.
        lines = path.read_bytes().decode(errors="replace").split("\n")
        rows = (line.split() for line in lines)
        return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}
    return {}


_MIB: Final = 2**20
_MIN_MARGIN: Final = 32 * _MIB
_MARGIN_SHARE: Final = 0.05
_MAX_MARGIN_SHARE: Final = 0.25
_MAX_BYTES_PER_SECOND: Final = 4096 * _MIB
_CHECK_SECONDS: Final = (0.005, 0.1)
_SHELL_CODE_OF_SIGKILL: Final = 128 + signal.SIGKILL
_KILL_VALID_SECONDS: Final = 1
"""An exit within this time after Linux killed something may be that kill."""


def memory_margin(limit: int) -> float:
    """Return how many bytes have to stay free."""
    return min(max(limit * _MARGIN_SHARE, _MIN_MARGIN), limit * _MAX_MARGIN_SHARE)


class MemoryMonitor:
    """Checks the headroom at intervals that depend on it."""

    def __init__(self, memory: CgroupMemory) -> None:
        self._memory = memory
        self._next_check = 0.0
        self._limit: int | None = None
        self._kills = memory.oom_kills()
        self._unexplained_kills = 0
        self._last_kill_at = -inf

    def seconds_until_check(self, now: float) -> float:
        """Return the seconds until the next check."""
        return max(0.0, self._next_check - now)

    def check(self) -> int | None:
        """Check if it is time to; return the limit if the headroom is below the margin."""
        now = event_loop.boottime()
        if now < self._next_check:
            return None
        left = inf
        if headroom := self._memory.headroom():
            self._limit = headroom.limit
            left = headroom.left - memory_margin(headroom.limit)
        shortest, longest = _CHECK_SECONDS
        self._next_check = now + min(max(left / _MAX_BYTES_PER_SECOND, shortest), longest)
        self._count_kills()
        return self._limit if left <= 0 else None

    def limit_of_kill(self, code: int) -> int | None:
        """Return the limit if a command that exited like this was killed by Linux for memory."""
        if code not in (-signal.SIGKILL, _SHELL_CODE_OF_SIGKILL):
            return None
        self._count_kills()
        is_recent = event_loop.boottime() <= self._last_kill_at + _KILL_VALID_SECONDS
        if not self._unexplained_kills or not is_recent:
            return None
        self._unexplained_kills -= 1
        return self._limit

    def _count_kills(self) -> None:
        kills = self._memory.oom_kills()
        if kills > self._kills:
            self._unexplained_kills = kills - self._kills
            self._last_kill_at = event_loop.boottime()
        self._kills = kills


_PROC: Final = pathlib.Path("/proc")
_RESIDENT_FIELDS: Final = ("RssAnon:", "RssShmem:")
_PROPORTIONAL_FIELDS: Final = ("Pss_Anon:", "Pss_Shmem:")


class _Process(NamedTuple):
    parent: int
    uid: int
    resident: int
    """Bytes not backed by files; pages shared with a forked process count fully."""


def largest_attempt(attempts: Iterable[AttemptProcess]) -> tuple[AttemptProcess, int] | None:
    """Find the attempt whose processes use most memory, and how many bytes they use."""
    processes = {pid: one for pid in process_reaper.list_pids() if (one := _read_process(pid))}
    pids = _pids_by_attempt(list(attempts), processes)
    upper_bounds = {one: sum(processes[pid].resident for pid in own) for one, own in pids.items()}
    largest: tuple[AttemptProcess, int] | None = None
    # Proportional sizes are expensive to read, and never larger than the sum of resident sizes.
    for attempt in sorted(upper_bounds, key=lambda one: upper_bounds[one], reverse=True):
        if largest and largest[1] >= upper_bounds[attempt]:
            break
        exact = min(upper_bounds[attempt], _exact_size(pids[attempt], processes))
        if largest is None or exact > largest[1]:
            largest = attempt, exact
    return largest


def _pids_by_attempt(
    attempts: list[AttemptProcess], processes: Mapping[int, _Process]
) -> dict[AttemptProcess, list[int]]:
    pids: dict[AttemptProcess, list[int]] = {one: [] for one in attempts}
    commands = {one.pid: one for one in attempts}
    uids = {one.workspace.uid: one for one in attempts if one.workspace.uid is not None}
    tags = {one.tag: one for one in attempts}
    for pid, process in processes.items():
        top = _top_ancestor(pid, processes)
        owner = uids.get(process.uid) or commands.get(top) or tags.get(process_reaper.read_tag(top))
        if owner:
            pids[owner].append(pid)
    return pids


def _top_ancestor(pid: int, processes: Mapping[int, _Process]) -> int:
    """Return the child of this process that `pid` descends from, 0 if there is none."""
    own = os.getpid()
    while pid in processes:
        if processes[pid].parent == own:
            return pid
        pid = processes[pid].parent
    return 0


def _exact_size(pids: list[int], processes: Mapping[int, _Process]) -> int:
    """Count pages that processes share once, where that can be read."""
    if len(pids) == 1:
        return processes[pids[0]].resident
    tables = {pid: _read_table(_PROC / str(pid) / "smaps_rollup") for pid in pids}
    return sum(
        _sum(table, _PROPORTIONAL_FIELDS) if table else processes[pid].resident
        for pid, table in tables.items()
    )


def _read_process(pid: int) -> _Process | None:
    table = _read_table(_PROC / str(pid) / "status")
    if "PPid:" not in table or "Uid:" not in table:
        return None
    return _Process(table["PPid:"], table["Uid:"], _sum(table, _RESIDENT_FIELDS))


def _sum(table: Mapping[str, int], names: tuple[str, ...]) -> int:
    return sum(table.get(name, 0) for name in names) * 1024

"""The memory that this process and its commands share, where a cgroup limits it.

Called by `pressure`. A limit may stand at any height above this process, so all that can be seen
are looked at, and the tightest counts. What Linux would take back before it kills (pages of files,
and what can go to swap) is not counted as used. Both versions of cgroups are read; they say the
same with other words.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from workron_runner import event_loop, process_reaper

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from workron_runner.attempt import Attempt


_NO_LIMIT: Final = 2**60
"""Version 1 has no word for it, and says the greatest number of whole pages."""


class _Words(NamedTuple):
    """What a version of cgroups calls it."""

    limit: str
    used: str
    reclaimable: tuple[str, ...]
    """Lines of `memory.stat`."""
    kills: str
    swap_limit: str
    swap_used: str
    is_swap_alone: bool
    """Whether the last two speak of swap alone, or of memory and swap together."""


_TYPES: Final = {1: "cgroup", 2: "cgroup2"}
_WORDS: Final = {
    2: _Words(
        "memory.max",
        "memory.current",
        ("inactive_file", "active_file", "slab_reclaimable"),
        "memory.events",
        "memory.swap.max",
        "memory.swap.current",
        is_swap_alone=True,
    ),
    1: _Words(
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
        "memory.oom_control",
        "memory.memsw.limit_in_bytes",
        "memory.memsw.usage_in_bytes",
        is_swap_alone=False,
    ),
}


class MemoryState(NamedTuple):
    """How near a limit is."""

    limit: int
    left: float
    """Bytes until it is reached."""


@dataclass(frozen=True, slots=True)
class CgroupLevel:
    """One cgroup that this process is in."""

    folder: pathlib.Path
    words: _Words

    @property
    def limit(self) -> float:
        """So much may be used here; infinite where nothing limits it."""
        return _number(self.folder / self.words.limit)

    def standing(self, swap_free: int) -> MemoryState | None:
        """Look how near the limit is, None if there is none (any more)."""
        limit = self.limit
        if limit == inf:
            return None
        stat = _table(self.folder / "memory.stat")
        reclaimable = sum(stat.get(name, 0) for name in self.words.reclaimable)
        used = _number(self.folder / self.words.used) - reclaimable
        # It cannot be read: then nothing is known, and nobody is to be killed for that.
        if used == inf:
            return None
        return MemoryState(int(limit), limit - used + self._swap_left(limit, swap_free))

    def kills(self) -> int:
        """So many processes did Linux kill here for memory."""
        return _table(self.folder / self.words.kills).get("oom_kill", 0)

    def _swap_left(self, limit: float, swap_free: int) -> float:
        if not swap_free:
            return 0
        may, used = (
            _number(self.folder / name) for name in (self.words.swap_limit, self.words.swap_used)
        )
        if not self.words.is_swap_alone:
            may, used = may - limit, used - _number(self.folder / self.words.used)
        return max(0, min(may - used, swap_free))


class Memory:
    """The levels at which there is a limit, and the one at which Linux counts what it killed."""

    def __init__(self, found: list[CgroupLevel], root: pathlib.Path) -> None:
        self._limited = [one for one in found if one.limit < inf]
        self._own = found[0]
        self._swaps = root / "proc/swaps"
        self._info = root / "proc/meminfo"

    def standing(self) -> MemoryState | None:
        """Look at the level whose limit is nearest."""
        swap_free = self._swap_free()
        seen = [one for level in self._limited if (one := level.standing(swap_free))]
        return min(seen, key=lambda one: one.left, default=None)

    def kills(self) -> int:
        """So many processes did Linux kill for memory."""
        return self._own.kills()

    def _swap_free(self) -> int:
        lines = self._swaps.read_text().splitlines() if self._swaps.exists() else []
        # The first is a headline.
        return _table(self._info).get("SwapFree:", 0) * 1024 if len(lines) > 1 else 0


def find_memory(root: pathlib.Path = pathlib.Path("/")) -> Memory | None:
    """Find what limits the memory of this process; None if nothing does."""
    found = list(cgroup_levels(root))
    is_limited = any(one.limit < inf for one in found)
    return Memory(found, root) if is_limited else None


def cgroup_levels(root: pathlib.Path) -> Iterator[CgroupLevel]:
    """Give the cgroups that count the memory of this process, its own one first."""
    with contextlib.suppress(OSError, ValueError):
        version, path = _own_path(root)
        top, mount = _mount(root, version)
        words = _WORDS[version]
        for folder in _folders(mount, top, path):
            if (folder / words.used).exists():
                yield CgroupLevel(folder, words)


def _own_path(root: pathlib.Path) -> tuple[int, str]:
    """Tell in which cgroup this process is; version 1 goes first where it has the memory."""
    lines = (root / "proc/self/cgroup").read_text().splitlines()
    rows = [line.split(":", 2) for line in lines]
    for _, controllers, path in rows:
        if "memory" in controllers.split(","):
            return 1, path
    return 2, next((path for number, _, path in rows if number == "0"), "/")


def _mount(root: pathlib.Path, version: int) -> tuple[str, pathlib.Path]:
    """Tell which cgroup stands at the mount of that version, and where the mount is."""
    for line in (root / "proc/self/mountinfo").read_text().splitlines():
        place, _, kind = line.partition(" - ")
        type_, _, options = kind.split(" ", 2)
        if type_ == _TYPES[version] and (version > 1 or "memory" in options.split(",")):
            top, mount = place.split()[3:5]
            return top, root / mount.lstrip("/")
    raise ValueError(f"no cgroup of version {version} is mounted")


def _folders(mount: pathlib.Path, top: str, path: str) -> Iterator[pathlib.Path]:
    """Give the folder of a cgroup and those above it, up to the mount.

    In a container its path may be told as the machine has it, and the mount be the cgroup itself.
    """
    below = path.removeprefix(top.rstrip("/")).strip("/")
    folder = mount / below
    if not folder.is_dir():
        folder = mount
    yield folder
    while folder != mount:
        folder = folder.parent
        yield folder


def _number(path: pathlib.Path) -> float:
    try:
        number = int(path.read_text())
    except (OSError, ValueError):
        # Not there at the top of all, and `max` in version 2.
        return inf
    return number if number < _NO_LIMIT else inf


def _table(path: pathlib.Path) -> dict[str, int]:
    with contextlib.suppress(OSError, ValueError):
        rows = (line.split() for line in path.read_text().splitlines())
        return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}
    return {}


_MIB: Final = 2**20
_LEAST_MARGIN: Final = 32 * _MIB
_MARGIN_SHARE: Final = 0.05
_MOST_MARGIN_SHARE: Final = 0.25
_FASTEST: Final = 4096 * _MIB
"""Bytes a second that commands may come to use; what is left lasts at least so long."""
_LOOK_SECONDS: Final = (0.005, 0.1)
_SHELL_SAYS_KILLED: Final = 128 + signal.SIGKILL
_KEPT_SECONDS: Final = 1
"""An end comes so soon after the kill that brought it about."""


def memory_margin(limit: int) -> float:
    """So much has to stay free: enough to act in, and never most of a small room."""
    return min(max(limit * _MARGIN_SHARE, _LEAST_MARGIN), limit * _MOST_MARGIN_SHARE)


class MemoryWatch:
    """Looks at the limit now and then, while anything runs."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._next = 0.0
        self._limit: int | None = None
        self._kills = memory.kills()
        self._unclaimed = 0
        self._risen_at = -inf

    def patience(self, moment: float) -> float:
        """Tell how many seconds are left until the next look."""
        return max(0.0, self._next - moment)

    def look(self) -> int | None:
        """Look, if it is time to; the limit that is near, if one is."""
        moment = event_loop.clock_now()
        if moment < self._next:
            return None
        left = self._left(self._memory.standing())
        self._next = moment + min(max(left / _FASTEST, _LOOK_SECONDS[0]), _LOOK_SECONDS[1])
        self._count()
        return self._limit if left <= 0 else None

    def has_ended(self, code: int) -> int | None:
        """Give the limit, if it was Linux that ended a command so, for memory."""
        if code not in (-signal.SIGKILL, _SHELL_SAYS_KILLED):
            return None
        self._count()
        if not self._unclaimed or event_loop.clock_now() > self._risen_at + _KEPT_SECONDS:
            return None
        self._unclaimed -= 1
        return self._limit

    def _left(self, standing: MemoryState | None) -> float:
        if standing is None:
            return inf
        self._limit = standing.limit
        return standing.left - memory_margin(standing.limit)

    def _count(self) -> None:
        kills = self._memory.kills()
        if kills > self._kills:
            self._unclaimed = kills - self._kills
            self._risen_at = event_loop.clock_now()
        self._kills = kills


_PROC: Final = pathlib.Path("/proc")
_OWN: Final = (b"RssAnon", b"RssShmem")
_SHARES: Final = (b"Pss_Anon", b"Pss_Shmem")


class _Process(NamedTuple):
    parent: int
    uid: int
    resident: int
    """Bytes that are no file's; what it shares with a process that it forked is counted whole."""


class MemoryUse(NamedTuple):
    """An attempt and the bytes that its processes hold."""

    attempt: Attempt
    resident: int


def largest_attempt(attempts: Iterable[Attempt]) -> MemoryUse | None:
    """Find the attempt whose processes hold most."""
    processes = {pid: one for pid in process_reaper.pids() if (one := _read(pid))}
    held = _by_attempt(list(attempts), processes)
    sums = {one: sum(processes[pid].resident for pid in pids) for one, pids in held.items()}
    best: MemoryUse | None = None
    # To share out costs much more than to sum up, and can only make less of it.
    for attempt in sorted(sums, key=lambda one: sums[one], reverse=True):
        if best and best.resident >= sums[attempt]:
            break
        use = MemoryUse(attempt, min(sums[attempt], _shared_out(held[attempt], processes)))
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
        owner = uids.get(process.uid) or commands.get(top) or marks.get(process_reaper.mark(top))
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

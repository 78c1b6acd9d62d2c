"""The memory that this process and its commands share, where a cgroup limits it.

Called by `pressure`. A limit may stand at any height above this process, so all that can be seen
are looked at, and the tightest counts. What Linux would take back before it kills (pages of files,
and what can go to swap) is not counted as used. Both versions of cgroups are read; they say the
same with other words.
"""

from __future__ import annotations

import contextlib
import pathlib
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class Standing(NamedTuple):
    """How near a limit is."""

    limit: int
    left: float
    """Bytes until it is reached."""


@dataclass(frozen=True, slots=True)
class Level:
    """One cgroup that this process is in."""

    folder: pathlib.Path
    words: _Words

    @property
    def limit(self) -> float:
        """So much may be used here; infinite where nothing limits it."""
        return _number(self.folder / self.words.limit)

    def standing(self, swap_free: int) -> Standing | None:
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
        return Standing(int(limit), limit - used + self._swap_left(limit, swap_free))

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

    def __init__(self, found: list[Level], root: pathlib.Path) -> None:
        self._limited = [one for one in found if one.limit < inf]
        self._own = found[0]
        self._swaps = root / "proc/swaps"
        self._info = root / "proc/meminfo"

    def standing(self) -> Standing | None:
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


def find(root: pathlib.Path = pathlib.Path("/")) -> Memory | None:
    """Find what limits the memory of this process; None if nothing does."""
    found = list(levels(root))
    is_limited = any(one.limit < inf for one in found)
    return Memory(found, root) if is_limited else None


def levels(root: pathlib.Path) -> Iterator[Level]:
    """Give the cgroups that count the memory of this process, its own one first."""
    with contextlib.suppress(OSError, ValueError):
        version, path = _own_path(root)
        top, mount = _mount(root, version)
        words = _WORDS[version]
        for folder in _folders(mount, top, path):
            if (folder / words.used).exists():
                yield Level(folder, words)


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

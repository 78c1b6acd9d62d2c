"""Whether this process may give its commands uids of their own, and what it gives up for that.

Called by `__main__`, before anything runs.
"""

from __future__ import annotations

import os
import pathlib
import resource
from typing import TYPE_CHECKING, Final

from workron_runner import system, uids

if TYPE_CHECKING:
    from workron_runner.uids import Range

_CAPABILITIES: Final = {
    0: "CAP_CHOWN",
    1: "CAP_DAC_OVERRIDE",
    3: "CAP_FOWNER",
    5: "CAP_KILL",
    6: "CAP_SETGID",
    7: "CAP_SETUID",
}
"""By their bits: to hand out folders, read and remove what is in them, end, and become another."""
_ALL_IDS: Final = 2**32 - 1


class RightsError(Exception):
    """This process lacks a right that it was asked to use; the message says which."""


def check(range_: Range, root: pathlib.Path = pathlib.Path("/")) -> None:
    """Raise RightsError if commands cannot get uids of this range from this process."""
    if not uids.is_known_here():
        raise RightsError(f"is not known on {os.uname().machine}")
    lines = (root / "proc/self/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    if set(status["Uid"].split()) != {"0"}:
        raise RightsError(f"needs root, and this process has the uid {status['Uid'].split()[1]}")
    effective = int(status["CapEff"], 16)
    if missing := [name for bit, name in _CAPABILITIES.items() if not effective >> bit & 1]:
        raise RightsError(f"needs rights that this process lacks: {', '.join(missing)}")
    for kind in ("uid", "gid"):
        if not any(start <= range_.first and range_.last < end for start, end in _map(root, kind)):
            raise RightsError(f"needs {kind}s that there are here, and {range_} are not")
    if uids.is_used(range_.first):
        raise RightsError(f"needs uids that are nobody else's, and {range_.first} is in use")


def check_processes(root: pathlib.Path = pathlib.Path("/")) -> None:
    """Raise RightsError if a limit on processes would bind this process itself."""
    if _map(root, "uid") != [(0, _ALL_IDS)]:
        raise RightsError("needs root of the machine itself: in a user namespace root is counted")


def settle(processes: int | None) -> None:
    """Have commands inherit no group, no way to more rights, and no more than so many processes."""
    os.setgroups([])
    system.no_new_rights()
    if processes is not None:
        # It is the uid's processes that are counted, and root is let be.
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def _map(root: pathlib.Path, kind: str) -> list[tuple[int, int]]:
    lines = (root / f"proc/self/{kind}_map").read_text().splitlines()
    rows = [[int(word) for word in line.split()] for line in lines]
    return [(inside, inside + count) for inside, _, count in rows]

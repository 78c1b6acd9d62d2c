"""Shuts a thread, and the command that it starts, off from what runs outside.

`enter` is handed on by `runner`, to be called on the thread that is about to start one command;
`__main__` and `workron.cli.worker` ask first whether it can be. In a domain of its own a
command can neither signal nor trace what it did not start, nor read its environment (unless it
holds CAP_PERFMON), nor reach its abstract sockets; files and the network are as they were. Nothing
lifts this again, and no program gets more rights than its caller from then on (as `sudo` would).
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import resource
import signal
import socket
from typing import TYPE_CHECKING, Final

from workron_runner import uids

if TYPE_CHECKING:
    from workron_runner.uids import Range


_CREATE_RULESET: Final = 444
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_VERSION_WITH_SCOPES: Final = 6
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 1 | 2
_PR_SET_NO_NEW_PRIVS: Final = 38


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


def has_landlock() -> bool:
    """Whether this kernel has domains with scopes: Linux 6.12 or newer, if it is switched on."""
    library = ctypes.CDLL(None, use_errno=True)
    version: int = library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return version >= _VERSION_WITH_SCOPES


def enter_landlock() -> None:
    """Put this thread into a new domain; OSError if that fails."""
    library = ctypes.CDLL(None, use_errno=True)
    rules = _Ruleset(scoped=_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS)
    size = ctypes.c_size_t(ctypes.sizeof(rules))
    _check(library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    ruleset = _check(library.syscall(_CREATE_RULESET, ctypes.byref(rules), size, 0))
    try:
        _check(library.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _check(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no Landlock domain: {os.strerror(number)}")
    return answer


_DESCRIPTORS: Final = 4096
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_SYSTEM_PR_SET_NO_NEW_PRIVS: Final = 38


def prepare_process() -> None:
    """Become whom orphans of commands come to, and whom commands of this user cannot look into."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_DUMPABLE, 0)
    _raise_limit_of_descriptors()
    # Whoever has his children buried by Linux hands that on, and no end could be told.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir("/")


def no_new_rights() -> None:
    """Let no program that this thread or what it starts runs have more rights than its caller."""
    _prctl(_SYSTEM_PR_SET_NO_NEW_PRIVS, 1)


def told_to_end() -> socket.socket:
    """Give what becomes readable when somebody asks the runner to end by SIGTERM."""
    reader, writer = socket.socketpair()
    os.set_blocking(writer.fileno(), False)
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return reader


def hide() -> None:
    """Let no command of this user look into this process: its environment may hold a credential."""
    _prctl(_PR_SET_DUMPABLE, 0)


def _raise_limit_of_descriptors() -> None:
    """Have enough for every command that an agent may want at once: each takes two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")


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


class SandboxError(Exception):
    """This process lacks a right that it was asked to use; the message says which."""


def check_uid_rights(range_: Range, root: pathlib.Path = pathlib.Path("/")) -> None:
    """Raise RightsError if commands cannot get uids of this range from this process."""
    if not uids.is_known_here():
        raise SandboxError(f"is not known on {os.uname().machine}")
    lines = (root / "proc/self/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    if set(status["Uid"].split()) != {"0"}:
        raise SandboxError(f"needs root, and this process has the uid {status['Uid'].split()[1]}")
    effective = int(status["CapEff"], 16)
    if missing := [name for bit, name in _CAPABILITIES.items() if not effective >> bit & 1]:
        raise SandboxError(f"needs rights that this process lacks: {', '.join(missing)}")
    for kind in ("uid", "gid"):
        if not any(start <= range_.first and range_.last < end for start, end in _map(root, kind)):
            raise SandboxError(f"needs {kind}s that there are here, and {range_} are not")
    if uids.is_used(range_.first):
        raise SandboxError(f"needs uids that are nobody else's, and {range_.first} is in use")


def check_process_limit(root: pathlib.Path = pathlib.Path("/")) -> None:
    """Raise RightsError if a limit on processes would bind this process itself."""
    if _map(root, "uid") != [(0, _ALL_IDS)]:
        raise SandboxError("needs root of the machine itself: in a user namespace root is counted")


def drop_rights(processes: int | None) -> None:
    """Have commands inherit no group, no way to more rights, and no more than so many processes."""
    os.setgroups([])
    no_new_rights()
    if processes is not None:
        # It is the uid's processes that are counted, and root is let be.
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def _map(root: pathlib.Path, kind: str) -> list[tuple[int, int]]:
    lines = (root / f"proc/self/{kind}_map").read_text().splitlines()
    rows = [[int(word) for word in line.split()] for line in lines]
    return [(inside, inside + count) for inside, _, count in rows]

"""Limits commands, and prepares the runner's process to supervise them.

With `--isolate` each command gets a Landlock domain of its own: it can neither signal nor trace
what it did not start, nor read its environment (unless it holds CAP_PERFMON), nor reach its
abstract sockets; files and the network are unaffected. With `--uids` each command runs as its own
uid, which needs root and the capabilities that `check_uid_privileges` lists.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import resource
import signal
import socket
from typing import Final

from workron_runner import uids
from workron_runner.uids import UidRange

_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)
_LANDLOCK_CREATE_RULESET: Final = 444
_LANDLOCK_RESTRICT_SELF: Final = 446
_LANDLOCK_GET_VERSION: Final = 1
_LANDLOCK_VERSION_WITH_SCOPES: Final = 6
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 1 | 2
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_MAX_DESCRIPTORS: Final = 4096
_CAPABILITIES: Final = {
    0: "CAP_CHOWN",
    1: "CAP_DAC_OVERRIDE",
    3: "CAP_FOWNER",
    5: "CAP_KILL",
    6: "CAP_SETGID",
    7: "CAP_SETUID",
}
"""By bit: to change the owner of folders, remove their content, kill, and change the uid."""
_ALL_IDS: Final = 2**32 - 1
_TERMINATION: Final = (signal.SIGTERM, signal.SIGINT)
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""`spawn` resets these in the command."""


class SandboxError(Exception):
    """This process lacks a privilege for an option; the message continues the option's name."""


class TerminationSignals:
    """SIGTERM and SIGINT as a descriptor that becomes readable."""

    def __init__(self) -> None:
        self._reader, writer = socket.socketpair()
        for end in (self._reader, writer):
            end.settimeout(0)
        self._is_requested = False
        signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
        for number in _TERMINATION:
            signal.signal(number, _ignore)

    def fileno(self) -> int:
        """Return a descriptor that is readable after any signal that has a handler."""
        return self._reader.fileno()

    def is_requested(self) -> bool:
        """Whether one of the two signals has arrived; consumes what is readable."""
        try:
            received = self._reader.recv(1024)
        except BlockingIOError:
            received = b""
        self._is_requested |= any(number in _TERMINATION for number in received)
        return self._is_requested


def prepare_process() -> None:
    """Adopt orphans, hide from commands, raise limits, and reset what was inherited."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    make_undumpable()
    # Enough descriptors for many commands: each needs two.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_MAX_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    # A process that ignores SIGCHLD never learns the exit status of its children.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _handle_ignored_signals()
    os.chdir("/")


def _handle_ignored_signals() -> None:
    """Ignore by a handler what was inherited as ignored (`nohup`, a shell's background job).

    An ignored signal stays ignored in a program that is executed; a handled one is reset to its
    default there. So a command gets every signal whatever the runner was started with.
    """
    for number in signal.valid_signals():
        if number not in _IGNORED_BY_PYTHON and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _ignore)


def _ignore(_number: int, _frame: object) -> None:
    pass


def make_undumpable() -> None:
    """Hide this process's memory and environment, which may hold a credential, from commands."""
    _prctl(_PR_SET_DUMPABLE, 0)


def set_no_new_privileges() -> None:
    """Let nothing that this thread executes gain privileges, as `sudo` would."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def has_landlock() -> bool:
    """Whether this kernel has Landlock with scopes: Linux 6.12 or newer, if enabled."""
    version: int = _LIBRARY.syscall(
        _LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _LANDLOCK_GET_VERSION
    )
    return version >= _LANDLOCK_VERSION_WITH_SCOPES


def enter_landlock() -> None:
    """Move this thread into a new Landlock domain, irrevocably; OSError if that fails."""
    # The handled rights on files and on the network, and the scopes.
    rules = (ctypes.c_uint64 * 3)(0, 0, _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS)
    size = ctypes.c_size_t(ctypes.sizeof(rules))
    what = "cannot enter a Landlock domain"
    set_no_new_privileges()
    ruleset = _check(_LIBRARY.syscall(_LANDLOCK_CREATE_RULESET, ctypes.byref(rules), size, 0), what)
    try:
        _check(_LIBRARY.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0), what)
    finally:
        os.close(ruleset)


def _prctl(option: int, value: int) -> None:
    _check(_LIBRARY.prctl(option, value, 0, 0, 0), f"prctl {option}")


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def check_uid_privileges(uid_range: UidRange, root: pathlib.Path = pathlib.Path("/")) -> None:
    """Raise SandboxError if this process cannot run commands as these uids."""
    if not uids.is_supported():
        raise SandboxError(f"is not supported on {os.uname().machine}")
    lines = (root / "proc/self/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    if set(status["Uid"].split()) != {"0"}:
        raise SandboxError(f"needs root, and this process has the uid {status['Uid'].split()[1]}")
    effective = int(status["CapEff"], 16)
    if missing := [name for bit, name in _CAPABILITIES.items() if not effective >> bit & 1]:
        raise SandboxError(f"needs capabilities that this process lacks: {', '.join(missing)}")
    for kind in ("uid", "gid"):
        ranges = _id_ranges(root, kind)
        if not any(start <= uid_range.first and uid_range.last < end for start, end in ranges):
            raise SandboxError(f"needs {kind}s of this user namespace, and {uid_range} are not")
    if uids.is_used(uid_range.first):
        raise SandboxError(f"needs unused uids, and {uid_range.first} is in use")


def check_process_limit(root: pathlib.Path = pathlib.Path("/")) -> None:
    """Raise SandboxError if a limit on processes would bind this process itself."""
    if _id_ranges(root, "uid") != [(0, _ALL_IDS)]:
        raise SandboxError(
            "needs root of the initial user namespace: in any other one the limit binds root too"
        )


def drop_privileges(processes: int | None) -> None:
    """Let commands inherit no groups, no way to gain privileges, and a limit on processes."""
    os.setgroups([])
    set_no_new_privileges()
    if processes is not None:
        # The kernel counts per uid and exempts root, so it binds the commands only.
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def _id_ranges(root: pathlib.Path, kind: str) -> list[tuple[int, int]]:
    lines = (root / f"proc/self/{kind}_map").read_text().splitlines()
    rows = [[int(word) for word in line.split()] for line in lines]
    return [(inside, inside + count) for inside, _, count in rows]

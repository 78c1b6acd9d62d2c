"""What the runner asks of Linux for itself, once, before it starts anything.

Called by `__main__`; `hide` by who has a runner, too.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
from typing import Final

_DESCRIPTORS: Final = 4096
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38


def settle() -> None:
    """Become whom orphans of commands come to, and whom commands of this user cannot look into."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_DUMPABLE, 0)
    _raise_limit_of_descriptors()
    # Whoever has his children buried by Linux hands that on, and no end could be told.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir("/")


def no_new_rights() -> None:
    """Let no program that this thread or what it starts runs have more rights than its caller."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


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

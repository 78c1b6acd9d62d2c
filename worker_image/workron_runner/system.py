"""What the runner asks of Linux for itself, once, before it starts anything.

Called by `__main__`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from typing import Final

_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38


def settle() -> None:
    """Become whom orphans of commands come to, and whom commands of this user cannot look into."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_DUMPABLE, 0)
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


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")

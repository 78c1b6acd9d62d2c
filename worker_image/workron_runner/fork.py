"""Starts commands as somebody else: by a fork, which alone can change whom it is before it begins.

Called by `spawn`. `posix_spawn` would start them as whom its thread is, and a thread that is for a
moment whom the command is can be killed by it, and the whole runner with it (docs/decisions/0011).
"""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def start(
    program: str, argv: Sequence[str], environment: Mapping[str, str], uid: int, output: int
) -> int:
    """Start a command in this folder, in no group but its own; OSError, ValueError: not started."""
    # A program that inherits a blocked signal would not hear it.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    child = subprocess.Popen(  # noqa: S603 - what to start is all that this is asked for
        argv,
        executable=program,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        # What this process has open is closed by itself in what it starts.
        close_fds=False,
        start_new_session=True,
        extra_groups=[],
        group=uid,
        user=uid,
    )
    # It is waited for elsewhere: else this object would take its status away when it is forgotten.
    child.returncode = 0
    return child.pid

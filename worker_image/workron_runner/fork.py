"""Starts commands as somebody else: by a fork, which alone can change whom it is before it begins.

Called by `hands`. `posix_spawn` would start them as whom its thread is, and a thread that is for a
moment whom the command is can be killed by it, and the whole runner with it (docs/decisions/0013).
"""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

from workron_runner import spawn

if TYPE_CHECKING:
    from workron_runner.spawn import Launch


def start(launch: Launch, uid: int, output: int) -> int:
    """Start a command, in no group but its own; OSError, ValueError: not started."""
    # A program that inherits a blocked signal would not hear it.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    child = subprocess.Popen(  # noqa: S603 - what to start is all that this is asked for
        launch.argv,
        executable=spawn.find(launch),
        cwd=launch.directory,
        env=launch.environment,
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

"""Signals of process 1 of a container, for which the kernel has no default actions.

Imported before anything else, so it imports next to nothing.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType


_SIGNAL_BASE: Final = 128
_INIT_PID: Final = 1


def handle_signals() -> None:
    """As process 1, exit on signals like any other process, and keep no zombie processes."""
    if os.getpid() != _INIT_PID:
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    # Linux then reaps all children itself. The runner reports its own end over its connection.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _end(number: int, _: FrameType | None) -> None:
    os._exit(_SIGNAL_BASE + number)

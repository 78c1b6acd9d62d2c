"""What the first process of a container has to do, and no other process has.

Linux ignores a signal that the first process does not handle, and brings it every orphan. Called at
the start of the program. No other program stands before it for that: from within a container
neither SIGKILL nor SIGSTOP reaches its first process, so no job can end or freeze its worker.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

_FIRST: Final = 1
_SIGNAL_BASE: Final = 128


def settle() -> None:
    """If this is the first process, end on signals as any other would, and keep no dead orphans."""
    if os.getpid() != _FIRST:
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    # Linux then buries all children by itself. How the runner ended is not known any more; it says.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _end(number: int, _: FrameType | None) -> None:
    os._exit(_SIGNAL_BASE + number)
